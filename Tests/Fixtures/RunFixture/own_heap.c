// A program with an allocator of its own that cannot say how large its pieces are.
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { HEAP_BYTES = 64 << 20, HEADER = 16 };
static _Alignas(16) uint8_t heap[HEAP_BYTES];
static size_t used;

void *malloc(size_t size) {
    const size_t need = HEADER + (size + 15) / 16 * 16, at = __atomic_fetch_add(&used, need, __ATOMIC_RELAXED);
    if (at + need > HEAP_BYTES) return NULL;
    memcpy(heap + at, &size, sizeof size);
    return heap + at + HEADER;
}

void free(void *piece) { (void)piece; }

void *calloc(size_t count, size_t size) { return malloc(count * size); }

void *realloc(void *piece, size_t size) {
    void *next = malloc(size);
    size_t before = 0;
    if (piece) memcpy(&before, (uint8_t *)piece - HEADER, sizeof before);
    if (next && piece) memcpy(next, piece, before < size ? before : size);
    return next;
}

int main(void) {
    struct epoll_event event;
    const int set = epoll_create1(0);
    for (int i = 0; i < 5; i++) epoll_wait(set, &event, 1, 60);
    usleep(100);
    puts("served");
    return 0;
}
