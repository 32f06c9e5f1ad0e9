#include "outer_door.h"

stall_door *stall_agent_door_here(void) { return door_of_thread; }

bool stall_agent_door_enter(
    stall_door *door, uint64_t kind, uint64_t key, const int *descriptors, size_t count, size_t stride, bool is_instant,
    uintptr_t frame, uint64_t caller) {
    return door_enter(
        door, (door_identity){kind, key}, descriptors, count, stride, is_instant, (door_place){frame, caller});
}

void stall_agent_door_leave(stall_door *door, bool is_instant) { door_leave(door, is_instant); }
