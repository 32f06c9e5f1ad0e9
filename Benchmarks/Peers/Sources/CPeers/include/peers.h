// The same work as in Benchmarks/LoopBenchmark, on libuv and on GLib. Each function returns the elapsed nanoseconds.
#pragma once
#include <stdbool.h>
#include <stdint.h>

/// `count` iterations with pending work.
uint64_t peers_uv_iterate(uint64_t count);
uint64_t peers_glib_iterate(uint64_t count);

/// `producers` threads post `count` tasks each. libuv has no queue of tasks: a mutex and a list. Either of nodes that the caller
/// allocated beforehand, which are only counted; or each allocated when it is posted, with a function that is called.
uint64_t peers_uv_post(uint64_t count, int producers, bool allocating);
uint64_t peers_glib_post(uint64_t count, int producers);

/// `size` timers far away are inserted, then cancelled in the order given by a fixed shuffle.
void peers_uv_timers(uint32_t size, uint64_t *insert, uint64_t *cancel);
void peers_glib_timers(uint32_t size, uint64_t *insert, uint64_t *cancel);

/// `active` eventfds are written, then served and read, until `count` events were served.
uint64_t peers_uv_descriptors(int active, uint64_t count);

/// A non-blocking eventfd.
int peers_eventfd(void);
