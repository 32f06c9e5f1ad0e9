// Sites in C and C++.

import CStallSites
import Foundation

private func nap(_ name: String, in function: String, _ body: @escaping (UInt32) -> Int32) -> Site {
    Site(name, in: function, for: [.sleep]) { _ in { sink &+= Int(body(stallMicroseconds)) } }
}

private func work(_ name: String, in function: String, _ body: @escaping (Int64) -> Int32) -> Site {
    Site(name, in: function, for: [.cpu]) { _ in { sink &+= Int(body(Int64(workEnd))) } }
}

let cSites: [Site] = [
    nap("C function", in: "c_nap") {
        c_nap($0); return 1
    },
    nap("C, named as Dispatch", in: "dispatch_order") { dispatch_order($0) },
    nap("C, named as Swift's runtime", in: "swift_parse_mt103") { swift_parse_mt103($0) },
    nap("C, named as libuuid", in: "uuid_generate_batch") { uuid_generate_batch($0) },
    nap("C, named as CoreFoundation", in: "CFGLoadSettings") { CFGLoadSettings($0) },
    nap("C, named as vouchers", in: "voucher_print") { voucher_print($0) },
    nap("C, named as Objective-C", in: "objc_export") { objc_export($0) },
    nap("C, named as ICU", in: "icu_admit") { icu_admit($0) },
    nap("C, named as a call of libc", in: "sync") { c_call_sync($0) },
    nap("C static function", in: "transmit") { c_call_transmit($0) },
    work("C comparator", in: "compare_slowly") { c_sort($0) },
    work("C function pointer", in: "crunch") { c_call_pointer($0) },
    nap("C macro", in: "c_nap_in_macro") { c_nap_in_macro($0) },
    nap("C recursion", in: "c_recurse") { c_recurse(200, $0) },
    work("C switch", in: "c_switch") { c_switch($0) },
    work("C longjmp", in: "c_longjmp") { c_longjmp($0) },
    work("C strings", in: "c_strings") { c_strings($0) },
    Site("C mutex", in: "c_mutex", for: [.lock]) { visit in
        nonisolated(unsafe) var mutex: UnsafeMutableRawPointer?
        visit.hold({ mutex = c_new_mutex() }, { c_mutex_unlock(mutex!) })
        return { sink &+= Int(c_mutex(mutex!)) }
    },
]

private func cxxLock(
    _ name: String, in function: String,
    _ hold: @escaping (UnsafeMutableRawPointer, @convention(c) () -> Void) -> Void,
    _ take: @escaping (UnsafeMutableRawPointer) -> Int32
) -> Site {
    Site(name, in: function, for: [.lock]) { visit in
        nonisolated(unsafe) let locks = cxx_new_locks()
        visit.hold(inside: { body in
            callback = body
            hold(locks, runCallback)
        })
        return { sink &+= Int(take(locks)) }
    }
}

let cxxSites: [Site] = [
    // It throws in one function and catches in the other.
    Site("C++ exceptions", in: "cxx::recover_all", "cxx::checked", for: [.cpu]) { _ in
        { sink &+= Int(cxx_exceptions(Int64(workEnd))) }
    },
    nap("C++ catch", in: "cxx::handle_failure") { cxx_catch($0) },
    work("C++ template", in: "cxx::Matrix::trace") { cxx_template($0) },
    work("C++ lambda", in: "cxx_lambda") { cxx_lambda($0) },
    work("C++ virtual", in: "cxx::Circle::area") { cxx_virtual($0) },
    work("C++ functor", in: "cxx::Scale::operator()") { cxx_functor($0) },
    work("C++ sort", in: "cxx::rank") { cxx_sort($0) },
    work("C++ regex", in: "cxx::scan_lines") { cxx_regex($0) },
    work("C++ map", in: "cxx::index_words") { cxx_map($0) },
    work("C++ stream", in: "cxx::print_table") { cxx_stream($0) },
    nap("C++ destructor", in: "cxx::Session::~Session") { cxx_destructor($0) },
    nap("C++ sleep_for", in: "cxx::rest") { cxx_sleep($0) },
    nap("C++ function named as a call of libc", in: "send") { cxx_send($0) },
    nap("C++ namespace swift", in: "swift::settle") { cxx_swift_namespace($0) },
    work("C++ std::function", in: "cxx::Scale::operator()") { cxx_function($0) },
    work("C++ filesystem", in: "cxx::walk") { cxx_directory(scratch, $0) },
    cxxLock(
        "std::mutex", in: "cxx::take_mutex", { cxx_hold_mutex($0, $1) }, { cxx_take_mutex($0) }),
    cxxLock(
        "std::recursive_mutex", in: "cxx::take_recursive", { cxx_hold_recursive($0, $1) },
        { cxx_take_recursive($0) }),
    cxxLock(
        "std::shared_mutex", in: "cxx::take_shared", { cxx_hold_shared($0, $1) },
        { cxx_take_shared($0) }),
    Site("std::condition_variable", in: "cxx::await_condition", for: [.lock]) { visit in
        nonisolated(unsafe) let locks = cxx_new_locks()
        visit.later { cxx_notify(locks) }
        return { sink &+= Int(cxx_await_condition(locks)) }
    },
    Site("std::future", in: "cxx::await_future", for: [.lock]) { visit in
        nonisolated(unsafe) let locks = cxx_new_locks()
        visit.later { cxx_promise(locks) }
        return { sink &+= Int(cxx_await_future(locks)) }
    },
]
