#include <stdexcept>

extern "C" int host_throw(int depth);

// A C++ error on its way through frames that the unwinder may be reading at the same moment.
int host_throw(int depth) {
    if (depth > 0) return 1 + host_throw(depth - 1);
    try {
        throw std::runtime_error("planned");
    } catch (const std::exception &) {
        return 1;
    }
}
