// A copy of the page of open stalls (stall_process_record.h) beside the store, where the page may be gone before a
// reader comes: systemd empties /dev/shm of a stopped service's user (RemoveIPC=, implied by DynamicUser=), and some
// containers have no /dev/shm.
//
// Writing a file may wait for the disk, which those who write the page must not. So a thread of its own copies each
// change: only it waits. The others wake it, and at the end of the process wait for it for some milliseconds.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stall_process_record.h"

/// Whether the page may be lost, judged by /dev/shm, the user, and the control group; `is_invoked`: systemd has set
/// INVOCATION_ID.
bool stall_page_copy_is_needed(bool is_invoked);
/// Prepares a copy of the monitor's page beside the store. True: then start a thread that calls `stall_page_copy_run`.
bool stall_page_copy_prepare(int32_t monitor, uint64_t run_high, uint64_t run_low, const char *_Nonnull store);
/// The thread did not start.
void stall_page_copy_cancel(int32_t monitor);
/// Copies each change until the monitor's entry is released. The file is created at the first one.
void stall_page_copy_run(int32_t monitor);

/// Whether the monitor has a copy, so that its page need not be a file itself.
bool stall_page_copy_is_kept(int32_t monitor);
/// The page to be copied from now on.
void stall_page_copy_follow(int32_t monitor, const stall_process_record *_Nonnull page);
/// Wakes the copying thread after a change. Any thread and any signal handler (see stall_system_call.h); never waits;
/// preserves errno.
__attribute__((visibility("hidden"))) void stall_page_copy_wake(int32_t monitor);
/// Waits until the copies contain what the pages do, for 20 ms at most, if a stall is open in one. For the end of the
/// process, also in a signal handler.
__attribute__((visibility("hidden"))) void stall_page_copy_flush(void);
/// Ends the copying, after a last copy or with the removal of the file. May wait for the disk; for the copying thread
/// 20 ms at most.
void stall_page_copy_end(int32_t monitor, bool removes);

/// The path of the copy of a run's page. False if it is longer than `size`.
bool stall_page_copy_path(
    const char *_Nonnull store, uint64_t run_high, uint64_t run_low, char *_Nonnull path, size_t size);
/// Reads the copy that a process of this boot left, if it belongs to `owner`. False if there is none.
bool stall_page_copy_read(
    const char *_Nonnull store, uint64_t run_high, uint64_t run_low, uint32_t owner,
    stall_process_record *_Nonnull record);
