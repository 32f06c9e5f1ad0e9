// Waits that another object intercepts (CStallPreload), of threads that have a door here.
#include "door.h"

// Nearly all of the waits: the door is open, and the last wait that was reported is over.
static bool is_again(const stall_door *door) {
    return door->loop.kind == DOOR_TOLD && !door->is_inside && !door->is_disabled
        && __atomic_load_n(&door->watchers, __ATOMIC_ACQUIRE) > 0;
}

bool stall_door_told_enter(bool is_instant, uintptr_t frame, uint64_t caller) {
    stall_door *door = door_of_thread;
    if (!door) return false;
    const door_place place = {frame, caller};
    if (!is_again(door)) return door_enter(door, (door_identity){DOOR_TOLD, 0}, NULL, 0, 0, is_instant, place);
    door_rest(door, is_instant, place);
    return true;
}

void stall_door_told_leave(bool is_instant) {
    stall_door *door = door_of_thread;
    if (door) door_leave(door, is_instant);
}
