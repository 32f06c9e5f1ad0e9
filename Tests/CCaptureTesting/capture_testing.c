#define _GNU_SOURCE
#include "capture_testing.h"

#include <dlfcn.h>
#include <unwind.h>

const char *testing_symbol_name(uint64_t address) {
    Dl_info symbol;
    return dladdr((void *)(uintptr_t)address, &symbol) != 0 ? symbol.dli_sname : 0;
}

typedef struct {
    uint64_t *addresses;
    uint32_t capacity, count, skip;
} recording;

static _Unwind_Reason_Code record(struct _Unwind_Context *context, void *argument) {
    recording *recording = argument;
    uint64_t address = _Unwind_GetIP(context);
    if (address == 0 || recording->count == recording->capacity) return _URC_NORMAL_STOP;
    if (recording->skip > 0) recording->skip--; else recording->addresses[recording->count++] = address;
    return _URC_NO_REASON;
}

__attribute__((noinline)) uint32_t testing_return_addresses(uint64_t *addresses, uint32_t capacity) {
    recording recording = {addresses, capacity, 0, 1};
    _Unwind_Backtrace(record, &recording);
    return recording.count;
}

uint64_t testing_function_start(uint64_t address) {
    return (uint64_t)_Unwind_FindEnclosingFunction((void *)(uintptr_t)address);
}
