// Functions that differ in a constant, or in nothing: compilers keep one body of them. Each has a caller of its own.

import Foundation

final class Store {
    var items: [Int] = []
    var total = 0

    @inline(never) func insertLocked(_ number: Int) -> Int {
        items.append(number)
        usleep(160_000)
        total &+= number
        items.append(total)
        total &*= 3
        usleep(5)
        return total
    }

    @inline(never) func bigQuery(_ number: Int) -> Int {
        items.append(number)
        usleep(170_000)
        total &+= number
        items.append(total)
        total &*= 3
        usleep(6)
        return total
    }

    @inline(never) func vacuum(_ number: Int) -> Int {
        items.append(number)
        usleep(165_000)
        total &+= number
        items.append(total)
        total &*= 3
        usleep(7)
        return total
    }
}

@inline(never) func saveFromMenu(_ store: Store) -> Int { store.insertLocked(1) &+ 1 }
@inline(never) func reportFromMenu(_ store: Store) -> Int { store.bigQuery(2) &+ 2 }
@inline(never) func cleanFromTimer(_ store: Store) -> Int { store.vacuum(3) &+ 3 }

@inline(never) public func pingPrimary(_ state: inout [Int]) {
    state.append(1)
    usleep(161_000)
    state.append(state.count)
    usleep(3)
}

@inline(never) public func pingReplica(_ state: inout [Int]) {
    state.append(2)
    usleep(162_000)
    state.append(state.count)
    usleep(4)
}

@inline(never) func checkPrimary(_ state: inout [Int]) { pingPrimary(&state); sink &+= state.count }
@inline(never) func checkReplica(_ state: inout [Int]) { pingReplica(&state); sink ^= state.count }

struct Celsius { var degrees: Int }
struct Kelvin { var degrees: Int }

@inline(never) func averageCelsius(_ values: [Celsius]) -> Int {
    var sum = 0
    while !isEnough() { for value in values { sum &+= mix(value.degrees) } }
    return sum
}

@inline(never) func averageKelvin(_ values: [Kelvin]) -> Int {
    var sum = 0
    while !isEnough() { for value in values { sum &+= mix(value.degrees) } }
    return sum
}

@inline(never) func showCelsius() { sink &+= averageCelsius((0..<50).map { Celsius(degrees: $0) }) }
@inline(never) func showKelvin() { sink ^= averageKelvin((0..<50).map { Kelvin(degrees: $0) }) }

// Closures keep these alive: what destroys a closure's context has no symbol, and is one for all of them.
final class PhotoCache {
    var count = 1
    deinit {
        usleep(163_000)
        sink &+= count
        usleep(3)
    }
}

final class SoundCache {
    var count = 2
    deinit {
        usleep(164_000)
        sink &+= count
        usleep(4)
    }
}

final class FontCache {
    var count = 3
    deinit {
        usleep(166_000)
        sink &+= count
        usleep(5)
    }
}

final class Keeper { var body: (() -> Int)? }

@inline(never) func forget(_ holder: Keeper) {
    holder.body = nil
    sink &+= 1
}

private func forgotten(_ name: String, of type: String, _ body: @escaping () -> () -> Int) -> Site {
    let functions = ["\(type).deinit", "\(type).__deallocating_deinit", "\(type).dealloc"]
    var site = Site(name, in: functions[0], for: [.sleep], caller: "forget(_:)") { _ in
        let holder = Keeper()
        holder.body = body()
        return { forget(holder) }
    }
    site.functions = functions + ["forget(_:)"]
    return site
}

// The same instructions: LLVM makes one body without a symbol and both functions jump there, or, with -Osize, it keeps the
// first under its own name.
struct Invitation {
    @inline(never) func send(_ count: Int) -> Int {
        usleep(stallMicroseconds)
        return count &* 5 &+ sink
    }
}

struct Reminder {
    @inline(never) func send(_ count: Int) -> Int {
        usleep(stallMicroseconds)
        return count &* 5 &+ sink
    }
}

// The same instructions again: LLVM keeps the getter under its own name.
struct Gauge {
    var stored: Int
    var reading: Int {
        @inline(never) get {
            usleep(stallMicroseconds)
            return stored &+ sink
        }
    }
}

struct Doorbell {
    @inline(never) func callAsFunction(_ times: Int) -> Int {
        usleep(stallMicroseconds)
        return times &+ sink
    }
}

private func replaced(
    _ name: String, in function: String, _ body: @escaping () -> Void
) -> Site {
    var site = Site(name, in: function, for: [.sleep]) { _ in body }
    site.hasSharedName = true
    return site
}

private func merged(
    _ name: String, in function: String, from caller: String, for cause: Cause,
    _ body: @escaping () -> Void
) -> Site {
    Site(name, in: function, for: [cause], caller: caller) { _ in body }
}

nonisolated(unsafe) private var states: [Int] = []

let mergedSites: [Site] = [
    merged("merged method 1", in: "Store.insertLocked(_:)", from: "saveFromMenu(_:)", for: .sleep) {
        sink &+= saveFromMenu(Store())
    },
    merged("merged method 2", in: "Store.bigQuery(_:)", from: "reportFromMenu(_:)", for: .sleep) {
        sink &+= reportFromMenu(Store())
    },
    merged("merged method 3", in: "Store.vacuum(_:)", from: "cleanFromTimer(_:)", for: .sleep) {
        sink &+= cleanFromTimer(Store())
    },
    merged("merged function 1", in: "pingPrimary(_:)", from: "checkPrimary(_:)", for: .sleep) {
        checkPrimary(&states)
    },
    merged("merged function 2", in: "pingReplica(_:)", from: "checkReplica(_:)", for: .sleep) {
        checkReplica(&states)
    },
    forgotten("merged deinit 1", of: "PhotoCache") {
        let cache = PhotoCache()
        return { cache.count }
    },
    forgotten("merged deinit 2", of: "SoundCache") {
        let cache = SoundCache()
        return { cache.count }
    },
    forgotten("merged deinit 3", of: "FontCache") {
        let cache = FontCache()
        return { cache.count }
    },
    merged("same code 1", in: "averageCelsius(_:)", from: "showCelsius()", for: .cpu) {
        showCelsius()
    },
    merged("same code 2", in: "averageKelvin(_:)", from: "showKelvin()", for: .cpu) {
        showKelvin()
    },
    replaced("same instructions 1", in: "Invitation.send(_:)") {
        sink &+= Invitation().send(sink & 7) &* 3
    },
    replaced("same instructions 2", in: "Reminder.send(_:)") {
        sink ^= Reminder().send(sink & 15) &+ 7
    },
    replaced("getter of the same instructions", in: "Gauge.reading.getter") {
        sink &+= Gauge(stored: 3).reading
    },
    replaced("call of the same instructions", in: "Doorbell.callAsFunction(_:)") {
        sink &+= Doorbell()(3)
    },
]
