// Waits that another object intercepts (CStallPreload), of threads that have a door here.
#include "door.h"

bool stall_door_told_enter(bool is_instant, uintptr_t frame, uint64_t caller) {
    stall_door *door = door_of_thread;
    return door
        && door_enter(door, (door_identity){DOOR_TOLD, 0}, NULL, 0, 0, is_instant, (door_place){frame, caller});
}

void stall_door_told_leave(bool is_instant) {
    stall_door *door = door_of_thread;
    if (door) door_leave(door, is_instant);
}
