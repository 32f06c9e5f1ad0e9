#include <stdexcept>

extern "C" {
int host_throw(int depth);
void host_throw_here(void);
void host_catch_signal(void);
void host_raise_fault(void);
}

// A C++ error on its way through frames that the unwinder may be reading at the same moment.
int host_throw(int depth) {
    if (depth > 0) return 1 + host_throw(depth - 1);
    try {
        throw std::runtime_error("planned");
    } catch (const std::exception &) {
        return 1;
    }
}

void host_throw_here(void) { throw std::runtime_error("planned"); }

// The handler throws through the signal's frame, as runtimes that turn faults into errors do. The signal stays blocked.
void host_catch_signal(void) {
    try {
        host_raise_fault();
    } catch (const std::exception &) {
    }
}
