// A set of descriptor numbers, for any thread. A number above the largest is in no set.
#pragma once
#include <stdbool.h>
#include <stdint.h>

enum { NUMBER_SET_SIZE = 1 << 16 };
typedef struct {
    uint64_t words[NUMBER_SET_SIZE / 64];
} number_set;

static inline bool number_set_has(const number_set *set, int number) {
    return number >= 0 && number < NUMBER_SET_SIZE
        && (__atomic_load_n(&set->words[number / 64], __ATOMIC_RELAXED) >> number % 64 & 1);
}

static inline void number_set_change(number_set *set, int number, bool is_in) {
    if (number < 0 || number >= NUMBER_SET_SIZE) return;
    const uint64_t bit = 1ull << number % 64;
    if (is_in) __atomic_fetch_or(&set->words[number / 64], bit, __ATOMIC_RELAXED);
    else __atomic_fetch_and(&set->words[number / 64], ~bit, __ATOMIC_RELAXED);
}
