// Finds the call frame information of an address: image -> .eh_frame_hdr -> FDE and CIE.
//
// Source: LSB 5.0, "Exception Frames" (.eh_frame, .eh_frame_hdr); DWARF 5, section 6.4.
#pragma once
#include "../Architecture/architecture.h"
#include "byte_cursor.h"

enum {
    IMAGE_LIMIT = 64,          // images of recent stacks
    IMAGE_HEAD_SIZE = 1024,    // ELF header, program headers and, in common linkers' layout, the build ID
    ENTRY_SIZE_LIMIT = 32768,  // the longest FDE that is supported
};

/// A mapped image and its search table. `head` is a copy to detect that another image replaced it.
typedef struct {
    uint64_t start, end;
    uint64_t header;  ///< .eh_frame_hdr; table entries are relative to it
    uint64_t table;
    uint64_t entry_count;
    uint32_t head_size;
    uint8_t head[IMAGE_HEAD_SIZE];
} cfi_image;

/// The parts of a CIE that apply to all of its FDEs.
typedef struct {
    uint64_t address;  ///< 0: none was read
    uint64_t code_alignment;
    int64_t data_alignment;
    uint64_t return_address;  ///< a register column
    uint8_t pointer_encoding;
    bool has_augmentation;
    bool is_signal_frame;
    byte_cursor instructions;
} cfi_common;

/// The instructions that describe the frames of one function.
typedef struct {
    uint64_t start, end;  ///< the function
    const cfi_common *common;
    byte_cursor instructions;
} cfi_function;

typedef struct {
    bool is_of_other_process;  ///< `others` are all images; the loader has none of them
    uint32_t other_count;
    const stall_unwind_image *others;
    uint32_t image_count;
    uint32_t added_count;  ///< how often an image was added
    bool is_outdated;  ///< images were dropped since the last refresh
    cfi_image images[IMAGE_LIMIT];
    uint8_t refreshed_heads[IMAGE_LIMIT][IMAGE_HEAD_SIZE];
    cfi_common common;
    uint8_t common_bytes[ENTRY_SIZE_LIMIT];
    uint8_t function_bytes[ENTRY_SIZE_LIMIT];
} cfi_tables;

/// Adds an image. False if the header has no search table, or is outside the image.
bool stall_cfi_tables_add(cfi_tables *tables, uint64_t start, uint64_t end, uint64_t header);
/// Drops all images if one of them is not mapped any more. Returns whether it did.
bool stall_cfi_tables_refresh(cfi_tables *tables);
/// The image that contains `address`, from the loader if it is new; NULL if there is none.
const cfi_image *stall_cfi_image_containing(cfi_tables *tables, uint64_t address);
/// The range around `address` without an entry. False if an entry contains it, or if there is no image.
bool stall_cfi_find_gap(cfi_tables *tables, uint64_t address, uint64_t *start, uint64_t *end);
/// Finds and parses the entry for `address`. Its cursors are valid until the next call.
bool stall_cfi_find_function(cfi_tables *tables, uint64_t address, cfi_function *function);
/// A pointer in one of the DW_EH_PE encodings.
uint64_t stall_cfi_encoded_pointer(byte_cursor *cursor, uint8_t encoding, uint64_t data_base);
