// What needs a process, and a main thread, for each case. They are forked off before this one has started a thread.

internal import Foundation
internal import LoopConformance
internal import StallRunLoop
internal import Synchronization

/// Forks, and ends the child with what `body` returns; after 20 seconds by SIGALRM. Returns its wait status.
private func statusOfFork(_ body: () -> CInt) -> CInt {
    // Swift's Glibc hides it.
    typealias Fork = @convention(c) () -> pid_t
    let fork = unsafeBitCast(dlsym(UnsafeMutableRawPointer(bitPattern: 0), "fork"), to: Fork.self)
    fflush(nil)
    let child = fork()
    if child == 0 {
        alarm(20)
        _exit(body())
    }
    var status: CInt = -1
    while waitpid(child, &status, 0) < 0 && errno == EINTR {}
    return status
}

// MARK: - Forks

/// Where the main loop may be when another thread forks.
private enum MainState: CaseIterable {
    case notRunning, waiting, timer, oneShot, block, source, observer, descriptor, mainQueue, idle,
        nested
}

/// A thread without a loop forks in each state. In the child it is the main thread: it must find a fresh main loop, with the
/// items of its parent's.
func checkForks() -> Bool {
    var failed = 0
    for state in MainState.allCases {
        let status = statusOfFork { playFork(state) }
        if status != 0 { failed += 1 }
        print(
            "fork while the main loop is in \(state): \(status == 0 ? "fresh" : "status \(status)")"
        )
    }
    print("fork states=\(MainState.allCases.count) failed=\(failed)")
    return failed == 0
}

private func playFork(_ state: MainState) -> CInt {
    let main = EventRunLoop.main
    nonisolated(unsafe) var (ticks, calls, status) = (0, 0, CInt(-1))
    let (isAsked, isForked) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    /// The main thread waits, at its first call, until the other one has forked.
    let hold: @Sendable () -> Void = {
        calls += 1
        guard calls == 1 else { return }
        isAsked.signal()
        isForked.wait()
        main.stop()
    }
    let timer = LoopTimer(after: .zero, every: .milliseconds(1)) { _ in
        ticks += 1
        if state == .timer { hold() }
    }
    main.add(timer, toMode: .common)
    prepare(state, main, hold)
    Thread.detachNewThread {
        if state == .waiting {
            timer.invalidate()
            while !main.isWaiting { sched_yield() }
        } else if state != .notRunning {
            isAsked.wait()
        }
        status = statusOfFork {
            (ticks, calls) = (0, 1)
            return useFreshMainLoop(state == .waiting) { ticks }
        }
        isForked.signal()
        main.post(inMode: .common) { main.stop() }
    }
    if state == .notRunning { isForked.wait() } else { main.run(mode: .default, for: .seconds(20)) }
    // The parent's goes on.
    ticks = 0
    while state != .waiting && ticks < 2 { main.run(for: .milliseconds(5)) }
    return status == 0 ? 0 : 100
}

/// In the child. Returns what is not as in a fresh loop.
private func useFreshMainLoop(_ needsTimer: Bool, _ ticks: () -> Int) -> CInt {
    let loop = EventRunLoop.current
    guard loop === EventRunLoop.main, loop.isCurrent, loop.currentMode == nil, !loop.isWaiting
    else {
        return 1
    }
    nonisolated(unsafe) var own = 0
    if needsTimer { loop.schedule(every: .milliseconds(1)) { _ in own += 1 } }
    loop.post { loop.stop() }
    guard loop.run(mode: .default, for: .seconds(20)) == .stopped else { return 2 }
    for _ in 0..<200 where ticks() + own < 2 { loop.run(for: .milliseconds(5)) }
    guard ticks() + own >= 2 else { return 3 }
    return loop.debugDescription.contains("firing") ? 4 : 0
}

/// Makes the main loop call `hold` in a state.
private func prepare(
    _ state: MainState, _ main: EventRunLoop, _ hold: @escaping @Sendable () -> Void
) {
    switch state {
    case .notRunning, .waiting, .timer: break
    case .oneShot: main.perform(after: .zero, hold)
    case .block: main.perform(hold)
    case .source:
        let source = LoopSource { _ in hold() }
        main.add(source, toMode: .common)
        source.signal()
    case .observer:
        main.add(LoopObserver(activities: .beforeTimers) { _, _ in hold() }, toMode: .common)
    case .descriptor:
        let file = open("/dev/null", O_RDONLY)
        let source = DescriptorSource(descriptor: file, onCancel: { close($0) }) { source, _ in
            source.invalidate()
            hold()
        }
        _ = try? main.add(source, toMode: .common)
    case .mainQueue: DispatchQueue.main.async(execute: hold)
    case .idle: main.performWhenIdle(hold)
    case .nested:
        main.perform {
            main.perform(inMode: "inner", hold)
            main.run(mode: "inner", for: .zero)
        }
    }
}

// MARK: - Descriptors

/// Loops of processes that have few descriptors left, on the main thread and on others, and a main loop that gets them one by
/// one.
func checkDescriptorLimits() -> Bool {
    var failed = 0
    func expectSuccess(_ name: String, _ body: () -> CInt) {
        let status = statusOfFork {
            // Who started this one may have left it descriptors that would be in the way.
            for number in CInt(3)..<1_024 { close(number) }
            return body()
        }
        guard status != 0 else { return }
        failed += 1
        print("\(name): status \(status)")
    }
    for left in CInt(0)...12 {
        expectSuccess("main thread, \(left) descriptors left") {
            leaveDescriptors(left)
            return useLoop()
        }
        expectSuccess("another thread, \(left) descriptors left") {
            nonisolated(unsafe) var status: CInt = 0
            onFreshThread {
                leaveDescriptors(left)
                status = useLoop()
            }
            return status
        }
    }
    expectSuccess("main thread, one descriptor more at a time") { takeDescriptorsOneByOne() }
    print("descriptors processes=27 failed=\(failed)")
    return failed == 0
}

/// Lets the process open so many more.
private func leaveDescriptors(_ left: CInt) {
    let next = dup(0)
    close(next)
    var limit = rlimit()
    getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    limit.rlim_cur = rlim_t(next + left)
    setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
}

/// What an app does with its first loop: a timer, a post of another thread, a descriptor. Returns what did not work.
private func useLoop() -> CInt {
    let loop = EventRunLoop.current
    loop.add(LoopSource { _ in }, toMode: .default)
    nonisolated(unsafe) var done = 0
    do throws(LoopError) {
        let source = DescriptorSource(descriptor: 0, events: [.readable, .writable]) { source, _ in
            source.invalidate()
            done += 1
        }
        try loop.add(source, toMode: .default)
    } catch {
        // A standard input that is a file takes one.
        guard case .system("eventfd", EMFILE) = error else { return 1 }
        done += 1
    }
    loop.perform(after: .milliseconds(1)) { done += 1 }
    Thread.detachNewThread { loop.post { done += 1 } }
    for _ in 0..<200 where done < 3 { loop.run(mode: .default, for: .milliseconds(10)) }
    do throws(LoopError) { _ = try EventRunLoop.makeCurrent() } catch {
        guard case .system(_, EMFILE) = error else { return 2 }
    }
    return done == 3 ? 0 : 3
}

/// The loop takes what it lacks, and keeps it. Returns the room at which it does not, or 100.
private func takeDescriptorsOneByOne() -> CInt {
    let first = dup(0)
    close(first)
    leaveDescriptors(0)
    let loop = EventRunLoop.current
    loop.run(for: .milliseconds(1))
    for room in CInt(1)...6 {
        let next = dup(0)
        if next >= 0 { close(next) }
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        limit.rlim_cur = rlim_t(first + room)
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        loop.forgetLastRenewal()
        // Long enough to wait at all on a busy machine.
        loop.run(for: .milliseconds(50))
        // A wake-up and a main queue descriptor, with a timer between them where the loop needs one, then an epoll set; no more
        // than that.
        let most = CInt(loop.needsTimerDescriptor ? 4 : 3)
        let free = dup(0)
        if free >= 0 { close(free) }
        guard (free < 0) == (room <= most) else { return room }
        guard loop.servesMainQueue == (room >= most - 1) else { return room }
    }
    nonisolated(unsafe) var isServed = false
    DispatchQueue.main.async { isServed = true }
    loop.run(for: .milliseconds(20))
    return isServed ? 0 : 100
}
