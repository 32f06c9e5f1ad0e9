// Real arm64 stacks, captured in a signal handler and unwound by CStackCapture's C, compared with the return addresses
// that each function records itself. scripts/check-arm64 builds it in several ways and runs it under qemu-user.
//
// Twice each: with all registers, as a running thread answers; and with only the stack pointer and the program counter,
// as the kernel exposes a blocked thread, for which the unwinder has to find the frame pointer.
#include <alloca.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "signal_copy.h"
#include "stack_unwinder.h"

void stall_registers_from_context(stall_registers *registers, const void *context);

enum { FRAMES = 64, STACK = 1 << 16, DEPTH = 5, SP = 31, PC = 32 };
static uint64_t expected[DEPTH];
static uint64_t stack_end, caller_pointer;
static stall_registers registers;
static uint8_t bytes[STACK];
static stall_stack_copy copy;

#define NOTE(n) expected[n] = (uint64_t)__builtin_extract_return_addr(__builtin_return_address(0))

static void handle(int number, siginfo_t *information, void *context) {
    (void)number, (void)information;
    stall_registers_from_context(&registers, context);
    const uint64_t low = registers.value[SP];
    const uint64_t length = stack_end - low < STACK ? stack_end - low : STACK;
    memcpy(bytes, (const void *)(uintptr_t)low, length);
    copy = (stall_stack_copy){.bytes = bytes, .base = low, .length = length};
}

// A leaf without a frame: its caller is in register 30 alone, or in its frame record at -O0.
static __attribute__((noinline)) void interrupt(void) {
    NOTE(0);
    __asm__ volatile("mov x8, #178\n\tsvc #0\n\t"   // gettid
                     "mov x1, %0\n\tmov x8, #130\n\tsvc #0"  // tkill
                     :: "r"((uint64_t)SIGURG) : "x0", "x1", "x8", "memory");
}
static __attribute__((noinline)) int with_pair(int a) {
    NOTE(1);
    __asm__ volatile("mov %0, sp" : "=r"(caller_pointer));
    interrupt();
    return a + 1;
}
static __attribute__((noinline)) int with_array(int a) {
    NOTE(2);
    volatile int big[2000];
    big[a] = a;
    return with_pair(big[a]) + big[a];
}
static __attribute__((noinline)) int with_variable_length(int a) {
    NOTE(3);
    volatile char *memory = alloca((size_t)a * 16 + 16);
    memory[0] = (char)a;
    return with_array(a) + memory[0];
}
static __attribute__((noinline)) int with_saved(int a, int b, int c) {
    NOTE(4);
    int x = with_variable_length(a);
    return x * b + with_variable_length(c) * a + x;
}

// Are the noted addresses all there, one after the other, from number `first` on?
static bool check(const char *what, const stall_registers *from, uint32_t first) {
    stall_unwinder *unwinder = stall_unwinder_create(NULL);
    stall_frame frames[FRAMES];
    bool is_truncated = false;
    if (!unwinder) return false;
    stall_unwinder_refresh(unwinder);
    const uint32_t count = stall_unwind(unwinder, from, &copy, frames, FRAMES, &is_truncated);
    stall_unwinder_destroy(unwinder);
    uint32_t found = 0;
    while (first + found < DEPTH && 1 + found < count && frames[1 + found].address == expected[first + found]) found++;
    const bool is_right = first + found == DEPTH && frames[0].address == from->value[PC];
    printf("%s: %u frames, %u of %u as noted%s\n", what, count, found, DEPTH - first, is_truncated ? ", truncated" : "");
    for (uint32_t i = 0; !is_right && i < count; i++) printf("    found %llx\n", (unsigned long long)frames[i].address);
    for (uint32_t i = first; !is_right && i < DEPTH; i++) printf("    noted %llx\n", (unsigned long long)expected[i]);
    return is_right;
}

int main(int count, char **arguments) {
    (void)arguments;
    stack_end = (uint64_t)(uintptr_t)__builtin_frame_address(0) + 256;
    struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO};
    sigaction(SIGURG, &action, NULL);
    volatile int result = with_saved(count, count + 1, count + 2);
    (void)result;
    if (getenv("SABOTAGE")) copy.bytes += 8;  // a stack that is not the thread's
    const bool is_whole = check("all registers", &registers, 0);
    // The caller of the leaf, as if it waited there.
    stall_registers bare = {.known = 0};
    stall_registers_set(&bare, SP, caller_pointer);
    stall_registers_set(&bare, PC, expected[0]);
    return check("stack pointer and program counter", &bare, 1) && is_whole ? 0 : 1;
}
