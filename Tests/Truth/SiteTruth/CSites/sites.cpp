// Sites in C++: templates, exceptions, lambdas, its locks.
#include "stall_sites.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <regex>
#include <shared_mutex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#define SITE __attribute__((noinline))

static volatile int kept;

static inline __attribute__((always_inline)) unsigned mixed(unsigned value) {
    for (int i = 0; i < 400; i++) value = value * 1664525u + 1013904223u + (value >> 7);
    return value;
}

namespace cxx {
site_body initializer;
struct Codec {
    Codec() { initializer(); }
    int size = 3;
    SITE static Codec &instance() {
        static Codec codec;
        return codec;
    }
};
std::once_flag plugins;
SITE void load_plugins(site_body body) {
    std::call_once(plugins, [=] { body(); });
    kept = kept + 1;
}

SITE int checked(int number) {
    if (number & 1) throw std::runtime_error("odd");
    return number;
}
SITE int recover_all(int64_t end) {
    int sum = 0;
    while (site_cpu() < end) {
        try { sum += checked(sum | 1); } catch (const std::exception &) { sum += 2; }
    }
    return sum;
}
SITE int handle_failure(unsigned microseconds) {
    try {
        checked(1);
    } catch (const std::exception &) {
        usleep(microseconds);
        kept = kept + 1;
    }
    return kept;
}
template <typename Value> struct Matrix {
    std::vector<Value> cells = std::vector<Value>(64, Value(2));
    SITE Value trace(int64_t end) {
        Value sum = 0;
        while (site_cpu() < end) for (auto cell : cells) sum += Value(mixed(unsigned(cell)) & 7);
        return sum;
    }
};
struct Shape {
    virtual ~Shape() = default;
    virtual int area(int64_t) { return 0; }
};
struct Circle : Shape {
    SITE int area(int64_t end) override {
        unsigned sum = 3;
        while (site_cpu() < end) sum = mixed(sum);
        return int(sum & 7);
    }
};
struct Scale {
    int factor;
    SITE int operator()(int64_t end) const {
        unsigned sum = unsigned(factor);
        while (site_cpu() < end) sum = mixed(sum) + 3;
        return int(sum & 7);
    }
};
SITE int rank(int64_t end) {
    std::vector<int> numbers(2000);
    while (site_cpu() < end) {
        for (size_t i = 0; i < numbers.size(); i++) numbers[i] = int((i * 7919) % 2003);
        std::sort(numbers.begin(), numbers.end(), [](int left, int right) { return left > right; });
    }
    return numbers[0];
}
SITE int scan_lines(int64_t end) {
    std::regex pattern("([a-z]+)([0-9]+)");
    std::string text = "alpha12 beta345 gamma6 delta";
    int found = 0;
    while (site_cpu() < end) found += int(std::distance(std::sregex_iterator(text.begin(), text.end(), pattern), {}));
    return found;
}
SITE int index_words(int64_t end) {
    int size = 0;
    while (site_cpu() < end) {
        std::map<std::string, int> words;
        for (int i = 0; i < 200; i++) words["word " + std::to_string(i % 50)] += i;
        size += int(words.size());
    }
    return size;
}
SITE int print_table(int64_t end) {
    int size = 0;
    while (site_cpu() < end) {
        std::ostringstream out;
        for (int i = 0; i < 200; i++) out << i << ' ' << 2.5 * i << '\n';
        size += int(out.str().size());
    }
    return size;
}
struct Session {
    unsigned microseconds;
    SITE ~Session() {
        usleep(microseconds);
        kept = kept + 1;
    }
};
SITE int rest(unsigned microseconds) {
    std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
    return kept = kept + 1;
}
SITE int apply(const std::function<int(int64_t)> &body, int64_t end) { return body(end) + 1; }
struct Locks {
    std::mutex mutex;
    std::recursive_mutex recursive;
    std::shared_mutex shared;
    std::condition_variable condition;
    bool ready = false;
    std::promise<int> promise;
};
SITE int take_mutex(Locks &locks) {
    std::lock_guard<std::mutex> guard(locks.mutex);
    return kept = kept + 1;
}
SITE int take_recursive(Locks &locks) {
    std::lock_guard<std::recursive_mutex> guard(locks.recursive);
    return kept = kept + 2;
}
SITE int take_shared(Locks &locks) {
    std::shared_lock<std::shared_mutex> guard(locks.shared);
    return kept = kept + 3;
}
SITE int await_condition(Locks &locks) {
    std::unique_lock<std::mutex> guard(locks.mutex);
    locks.condition.wait(guard, [&] { return locks.ready; });
    return kept = kept + 4;
}
SITE int await_future(Locks &locks) { return locks.promise.get_future().get() + (kept = kept + 5); }
SITE int walk(const char *path, int64_t end) {
    int count = 0;
    while (site_cpu() < end) for (auto &entry : std::filesystem::directory_iterator(path)) count += entry.exists();
    return count;
}
}  // namespace cxx

struct Message { int size; };
SITE static int send(const Message &message, unsigned microseconds) {
    usleep(microseconds);
    return kept = kept + message.size;
}
namespace swift {
SITE int settle(unsigned microseconds) {
    usleep(microseconds);
    return kept = kept + 9;
}
}  // namespace swift

extern "C" {
void cxx_static_local(site_body body) {
    cxx::initializer = body;
    kept = kept + cxx::Codec::instance().size;
}
void cxx_call_once(site_body body) { cxx::load_plugins(body); }
int cxx_exceptions(int64_t end) { return cxx::recover_all(end) + 1; }
int cxx_catch(unsigned microseconds) { return cxx::handle_failure(microseconds) + 1; }
int cxx_template(int64_t end) { return int(cxx::Matrix<double>().trace(end)) + 1; }
int cxx_lambda(int64_t end) {
    auto body = [](int64_t end) __attribute__((noinline)) {
        unsigned sum = 5;
        while (site_cpu() < end) sum = mixed(sum);
        return int(sum & 7);
    };
    return body(end) + 1;
}
int cxx_virtual(int64_t end) {
    std::unique_ptr<cxx::Shape> shape(kept >= 0 ? new cxx::Circle : new cxx::Shape);
    return shape->area(end) + 1;
}
int cxx_functor(int64_t end) { return cxx::Scale{3}(end) + 1; }
int cxx_sort(int64_t end) { return cxx::rank(end) + 1; }
int cxx_regex(int64_t end) { return cxx::scan_lines(end) + 1; }
int cxx_map(int64_t end) { return cxx::index_words(end) + 1; }
int cxx_stream(int64_t end) { return cxx::print_table(end) + 1; }
int cxx_destructor(unsigned microseconds) {
    { cxx::Session session{microseconds}; }
    return kept + 1;
}
int cxx_sleep(unsigned microseconds) { return cxx::rest(microseconds) + 1; }
int cxx_send(unsigned microseconds) { return send(Message{3}, microseconds) + 1; }
int cxx_swift_namespace(unsigned microseconds) { return swift::settle(microseconds) + 1; }
int cxx_function(int64_t end) { return cxx::apply(cxx::Scale{4}, end) + 1; }
void *cxx_new_locks(void) { return new cxx::Locks; }
static cxx::Locks &locks_at(void *locks) { return *static_cast<cxx::Locks *>(locks); }
void cxx_hold_mutex(void *locks, site_body body) {
    std::lock_guard<std::mutex> guard(locks_at(locks).mutex);
    body();
}
void cxx_hold_recursive(void *locks, site_body body) {
    std::lock_guard<std::recursive_mutex> guard(locks_at(locks).recursive);
    body();
}
void cxx_hold_shared(void *locks, site_body body) {
    std::lock_guard<std::shared_mutex> guard(locks_at(locks).shared);
    body();
}
void cxx_notify(void *locks) {
    std::lock_guard<std::mutex> guard(locks_at(locks).mutex);
    locks_at(locks).ready = true;
    locks_at(locks).condition.notify_one();
}
void cxx_promise(void *locks) { locks_at(locks).promise.set_value(4); }
int cxx_take_mutex(void *locks) { return cxx::take_mutex(locks_at(locks)) + 1; }
int cxx_take_recursive(void *locks) { return cxx::take_recursive(locks_at(locks)) + 1; }
int cxx_take_shared(void *locks) { return cxx::take_shared(locks_at(locks)) + 1; }
int cxx_await_condition(void *locks) { return cxx::await_condition(locks_at(locks)) + 1; }
int cxx_await_future(void *locks) { return cxx::await_future(locks_at(locks)) + 1; }
int cxx_directory(const char *path, int64_t end) { return cxx::walk(path, end) + 1; }
}
