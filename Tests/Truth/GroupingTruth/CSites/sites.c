#include <stdarg.h>
#include <stdlib.h>

#include "site_leaf.h"

#define SITE __attribute__((noinline))

static volatile int sink;

SITE static int read_header(site_leaf leaf, int version) {
    STALL(leaf);
    return version * 3 + sink;
}

int site_c_plain(site_leaf leaf) { return read_header(leaf, 4) + 1; }

SITE static int write_trailer(site_leaf leaf) {
    sink += 5;
    STALL(leaf);
    return sink >> 1;
}

int site_c_pointer(site_leaf leaf) {
    int (*volatile write)(site_leaf) = write_trailer;
    return write(leaf) + 2;
}

static site_leaf comparator_leaf;
static int comparator_is_armed;

SITE static int compare_lengths(const void *left, const void *right) {
    if (comparator_is_armed) {
        comparator_is_armed = 0;
        STALL(comparator_leaf);
    }
    return *(const int *)left - *(const int *)right;
}

int site_c_comparator(site_leaf leaf) {
    int lengths[] = {5, 3, 9, 1};
    comparator_leaf = leaf;
    comparator_is_armed = 1;
    qsort(lengths, 4, sizeof lengths[0], compare_lengths);
    return lengths[0];
}

SITE static int sum_all(site_leaf leaf, int count, ...) {
    va_list list;
    int sum = 0;
    va_start(list, count);
    for (int index = 0; index < count; index += 1) sum += va_arg(list, int);
    va_end(list);
    STALL(leaf);
    return sum;
}

int site_c_variadic(site_leaf leaf) { return sum_all(leaf, 3, 1, 2, 3) - 1; }

SITE static int visit_folder(site_leaf leaf, int depth) {
    if (depth == 0) {
        STALL(leaf);
        return sink;
    }
    return visit_folder(leaf, depth - 1) + depth;
}

int site_c_recursive(site_leaf leaf) { return visit_folder(leaf, 2 + (int)leaf) * 2; }

SITE static int decode_opcode(site_leaf leaf, int opcode) {
    switch (opcode & 3) {
    case 0: sink += 1; break;
    case 1: STALL(leaf); break;
    default: sink -= 1; break;
    }
    return sink ^ opcode;
}

int site_c_switch(site_leaf leaf) { return decode_opcode(leaf, 5) | 1; }
