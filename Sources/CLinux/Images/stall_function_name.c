#include "stall_function_name.h"

#include <elf.h>
#include <fcntl.h>
#include <malloc.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stall_descriptors.h"
#include "stall_images.h"

enum { SYMBOLS_AT_ONCE = 256, MOST_SECTIONS = 4096, DEPTH = 5 };

static bool read_all(int file, void *to, size_t size, uint64_t offset) {
    return offset <= INT64_MAX && pread(file, to, size, (off_t)offset) == (ssize_t)size;
}

/// The lowest address that the file's segments are linked at.
static bool lowest_address(int file, const Elf64_Ehdr *header, uint64_t *lowest) {
    *lowest = UINT64_MAX;
    for (unsigned i = 0; i < header->e_phnum; i++) {
        Elf64_Phdr segment;
        if (!read_all(file, &segment, sizeof segment, header->e_phoff + i * sizeof segment)) break;
        if (segment.p_type == PT_LOAD && segment.p_vaddr < *lowest) *lowest = segment.p_vaddr;
    }
    return *lowest != UINT64_MAX;
}

/// Looks through one symbol table. True when a function contains the address, or begins there if it must.
static bool search(
    int file, const Elf64_Shdr *symbols, const Elf64_Shdr *names, uint64_t address, bool begins, char *name,
    size_t capacity) {
    Elf64_Sym block[SYMBOLS_AT_ONCE];
    const uint64_t count = symbols->sh_size / sizeof(Elf64_Sym);
    for (uint64_t done = 0; done < count;) {
        const uint64_t left = count - done;
        const size_t wanted = left < SYMBOLS_AT_ONCE ? (size_t)left : SYMBOLS_AT_ONCE;
        if (!read_all(file, block, wanted * sizeof *block, symbols->sh_offset + done * sizeof *block)) return false;
        for (size_t i = 0; i < wanted; i++) {
            const Elf64_Sym *symbol = &block[i];
            if (ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || symbol->st_shndx == SHN_UNDEF) continue;
            if (address < symbol->st_value || address - symbol->st_value >= symbol->st_size) continue;
            if (begins && address != symbol->st_value) continue;
            if (symbol->st_name >= names->sh_size) return false;
            const uint64_t rest = names->sh_size - symbol->st_name;
            const size_t size = rest < capacity - 1 ? (size_t)rest : capacity - 1;
            const ssize_t got = pread(file, name, size, (off_t)(names->sh_offset + symbol->st_name));
            name[got > 0 ? got : 0] = 0;
            return name[0] != 0;
        }
        done += wanted;
    }
    return false;
}

static bool name_in_file(int file, uint64_t offset, bool begins, char *name, size_t capacity) {
    Elf64_Ehdr header;
    uint64_t lowest;
    if (!read_all(file, &header, sizeof header, 0) || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0
        || header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_shentsize != sizeof(Elf64_Shdr)
        || header.e_phentsize != sizeof(Elf64_Phdr) || header.e_shnum > MOST_SECTIONS
        || !lowest_address(file, &header, &lowest))
        return false;
    // The whole table first; a stripped file has only what it exports.
    for (unsigned type = SHT_SYMTAB;; type = SHT_DYNSYM) {
        for (unsigned i = 0; i < header.e_shnum; i++) {
            Elf64_Shdr symbols, names;
            if (!read_all(file, &symbols, sizeof symbols, header.e_shoff + i * sizeof symbols)) return false;
            if (symbols.sh_type != type || symbols.sh_link >= header.e_shnum) continue;
            if (!read_all(file, &names, sizeof names, header.e_shoff + symbols.sh_link * sizeof names)) return false;
            if (search(file, &symbols, &names, lowest + offset, begins, name, capacity)) return true;
        }
        if (type == SHT_DYNSYM) return false;
    }
}

static bool function_name(
    const stall_image_list *images, uint64_t address, bool begins, char *name, size_t capacity) {
    for (size_t i = 0; i < stall_image_list_count(images); i++) {
        const stall_image image = stall_image_list_get(images, i);
        if (address < image.load_address || address >= image.end_address || image.is_vdso) continue;
        const int file = stall_descriptor_open_to_read(image.is_main ? "/proc/thread-self/exe" : image.path, 0);
        if (file < 0) return false;
        struct stat status;
        const bool found = fstat(file, &status) == 0 && S_ISREG(status.st_mode)
            && name_in_file(file, address - image.load_address, begins, name, capacity);
        stall_descriptor_end(file);
        return found;
    }
    return false;
}

static bool ends_with(const char *text, const char *end) {
    const size_t length = strlen(text), wanted = strlen(end);
    return length >= wanted && strcmp(text + length - wanted, end) == 0;
}

/// A function that calls another closure: one of the module, or the compiler's between two conventions.
static bool is_wrapper(const char *name, const char *module) {
    return strncmp(name, module, strlen(module)) == 0 || ends_with(name, "TR") || ends_with(name, "TRTA");
}

static bool find(
    const stall_image_list *images, uint64_t function, bool begins, const uint64_t *context, const char *module,
    int depth, char *name, size_t capacity) {
    if (!function_name(images, function, begins, name, capacity)) return false;
    if (depth == 0 || !context || !is_wrapper(name, module)) return true;
    // Behind the two words of the object's header: what the closure has captured first, a function as two words. Only that:
    // memory behind the object may hold what was there before.
    if (malloc_usable_size((void *)context) < 4 * sizeof *context) return true;
    char inner[512];
    if (find(images, context[2], true, (const uint64_t *)context[3], module, depth - 1, inner, sizeof inner)
        && !is_wrapper(inner, module)) {
        strncpy(name, inner, capacity - 1);
        name[capacity - 1] = 0;
    }
    return true;
}

bool stall_handler_name(
    uint64_t function, const uint64_t *context, const char *module, char *name, size_t capacity) {
    stall_image_list *images = stall_image_list_create();
    if (!images) return false;
    const bool found = find(images, function, false, context, module, DEPTH, name, capacity);
    stall_image_list_free(images);
    return found;
}
