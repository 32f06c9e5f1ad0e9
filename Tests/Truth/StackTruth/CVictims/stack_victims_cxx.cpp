#include "stack_victims.h"

#include <stdexcept>
#include <string>
#include <vector>

namespace {

struct Guard {
    victim_body body;
    int depth;
    ~Guard() { body(depth); }
};

[[gnu::noinline]] int descend(int depth, victim_body body) {
    std::vector<std::string> locals(3, "a string that is longer than the small buffer");
    if (depth == 0) throw std::runtime_error("thrown");
    return descend(depth - 1, body) + static_cast<int>(locals[0].size());
}

[[gnu::noinline]] int descend_guarded(int depth, victim_body body) {
    Guard guard{body, depth};
    return descend(depth, body) + 1;
}

int ignore(int argument) { return argument; }

}  // namespace

int victim_while_throwing(int depth, victim_body body) {
    try {
        return descend_guarded(depth, body);
    } catch (const std::exception &error) {
        return static_cast<int>(error.what()[0]);
    }
}

int victim_throw_forever() {
    int total = 0;
    for (int i = 0; total >= 0; i = (i + 1) % 12) {
        try {
            total += descend(i, ignore);
        } catch (const std::exception &) {
            total += 1;
        }
        total &= 0xffff;
    }
    return total;
}

int victim_throw_once(int depth) {
    try {
        return descend(depth, ignore);
    } catch (const std::exception &) {
        return depth;
    }
}
