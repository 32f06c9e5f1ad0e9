#include "blocking_plants.h"
#include <unistd.h>
#include <time.h>
__attribute__((noinline)) static void plant_usleep(void) { usleep(1); __asm__ volatile(""); }
__attribute__((noinline)) static void plant_clock(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); __asm__ volatile(""); }
static const blocking_plant plants[] = {{"usleep", 6, 0, plant_usleep}};
static const blocking_plant innocents[] = {{"clock", 0, 0, plant_clock}};
#define NUMBERED(table, number) ((number) < sizeof table / sizeof *table ? &table[number] : NULL)
const blocking_plant *blocking_plant_numbered(uint32_t number) { return NUMBERED(plants, number); }
const blocking_plant *blocking_innocent_numbered(uint32_t number) { return NUMBERED(innocents, number); }
