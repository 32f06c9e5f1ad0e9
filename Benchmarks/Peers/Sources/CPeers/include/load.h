// Loops that have many items already: what does one more cost? Times are CPU time of the calling thread, in nanoseconds an operation.
#pragma once
#include <stdint.h>

/// CPU time of the calling thread so far.
uint64_t load_cpu_ns(void);

/// What adding (with making), changing and removing one item costs, 0 for what the loop does not have. `present` items are there,
/// `count` are added, changed and removed in another order.
typedef struct { double add, change, remove; } load_costs;

load_costs load_uv_timers(uint32_t present, uint32_t count);
load_costs load_glib_timers(uint32_t present, uint32_t count);
/// Asyncs, and sources that are not ready.
load_costs load_uv_sources(uint32_t present, uint32_t count);
load_costs load_glib_sources(uint32_t present, uint32_t count);
/// Prepare handles.
load_costs load_uv_observers(uint32_t present, uint32_t count);
/// `descriptors` are `present` + `count` open ones.
load_costs load_uv_descriptors(const int *descriptors, uint32_t present, uint32_t count);
load_costs load_glib_descriptors(const int *descriptors, uint32_t present, uint32_t count);

/// One iteration with pending work and `present` idle sources.
double load_uv_idle(uint32_t present, uint32_t iterations);
double load_glib_idle(uint32_t present, uint32_t iterations);
/// One iteration that serves `ready` sources.
double load_uv_ready(uint32_t ready, uint32_t iterations);
double load_glib_ready(uint32_t ready, uint32_t iterations);
/// One sleep of a millisecond with `present` timers that are not due.
double load_uv_sleep(uint32_t present, uint32_t sleeps);
double load_glib_sleep(uint32_t present, uint32_t sleeps);
