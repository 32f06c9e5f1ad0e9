// Loaded with dlopen by the victim: an exception begins and ends here, and passes through the program's frames between.
#include <stdexcept>
#include <string>

namespace {

struct Guard {
    int (*body)(int);
    ~Guard() { body(1); }
};

[[gnu::noinline]] int fail(const std::string &reason) { throw std::runtime_error(reason); }

}  // namespace

/// Calls `inner`, which may throw what this file throws, and catches it.
extern "C" int plugin_catch(int (*inner)(int (*)(int)), int (*body)(int)) {
    try {
        return inner(body) + 1;
    } catch (const std::exception &error) {
        return static_cast<int>(error.what()[0]);
    }
}

/// Throws; on the way out `body` is called.
extern "C" int plugin_throw(int (*body)(int)) {
    Guard guard{body};
    return fail("thrown in a plug-in") + 1;
}
