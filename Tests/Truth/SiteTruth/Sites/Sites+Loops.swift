// Loops inside of callouts, long single calls, async functions.

import CStallSites
import Foundation
import StallAgent

@inline(never) func spinUntilDone() {
    RunLoop.current.run(until: Date(timeIntervalSinceNow: stallSeconds))
    sink &+= 1
}

@inline(never) func runOnce() {
    let timer = Timer(timeInterval: stallSeconds, repeats: false) { _ in sink &+= 1 }
    RunLoop.current.add(timer, forMode: .default)
    _ = RunLoop.current.run(mode: .default, before: Date(timeIntervalSinceNow: 5))
    sink &+= 1
}

@inline(never) func layoutInTimer() {
    usleep(stallMicroseconds)
    sink &+= 1
}

@inline(never) func runNestedTimer() {
    let timer = Timer(timeInterval: 0.001, repeats: false) { _ in layoutInTimer() }
    RunLoop.current.add(timer, forMode: .default)
    RunLoop.current.run(until: Date(timeIntervalSinceNow: stallSeconds))
    sink &+= 1
}

@inline(never) func drawInModal() {
    usleep(stallMicroseconds)
    sink &+= 2
}

@MainActor @inline(never) func runModal() {
    let loop = EventRunLoop.main
    loop.add(LoopTimer(after: .milliseconds(1)) { _ in drawInModal() }, toMode: "modal")
    _ = loop.run(mode: "modal", for: .seconds(2), returnAfterSourceHandled: true)
    sink &+= 1
}

@inline(never) func zeroMemory() {
    let memory = malloc(1 << 30)!
    let file = open("/dev/zero", O_RDONLY)
    sink &+= read(file, memory, 1 << 30)
    close(file)
    free(memory)
}

@inline(never) func unmapAll(_ memory: UnsafeMutableRawPointer, _ size: Int) {
    while !isEnough() {
        memset(memory, 1, size)
        madvise(memory, size, 4)
        sink &+= 1
    }
}

let loopSites: [Site] = [
    Site("nested run loop with a limit", in: "spinUntilDone()", for: [.sleep]) { _ in
        { spinUntilDone() }
    },
    Site("nested run loop, one timer", in: "runOnce()", for: [.sleep, .ipc]) { _ in { runOnce() } },
    Site("callout of a nested run loop", in: "layoutInTimer()", for: [.sleep]) { _ in
        { runNestedTimer() }
    },
    Site("fault and return of memory", in: "unmapAll(_:_:)", for: [.cpu, .pageFault]) { visit in
        let memory = mmap(
            nil, 32 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)!
        visit.atEnd { munmap(memory, 32 << 20) }
        return { unmapAll(memory, 32 << 20) }
    },
]

// MARK: - Async

@MainActor @inline(never) func refresh() async {
    usleep(stallMicroseconds)
    sink &+= 1
}

@MainActor final class ViewModel {
    var count = 0

    @inline(never) func reload() async {
        await Task.yield()
        compute()
        count += 1
    }

    @inline(never) func compute() {
        while !isEnough() { sink &+= mix(sink) }
        count += 1
    }

    @inline(never) func show() async {
        await reload()
        count += 1
    }
}

let asyncSites: [Site] = [
    Site("async function", in: "refresh()", for: [.sleep]) { await refresh() }
]
