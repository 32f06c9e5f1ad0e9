// Tests that never end, in tasks.

import Dispatch
import Foundation
import Testing

nonisolated(unsafe) private var kept: [Any] = []

@Test func lostContinuation() async {
    began()
    await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in  // hangs: suspended
        kept.append(continuation)
    }
}

private typealias Thrower = UnsafeContinuation<Void, any Error>

@Test func lostUnsafeContinuation() async throws {
    began()
    try await withUnsafeThrowingContinuation { (continuation: Thrower) in  // hangs: suspended
        kept.append(continuation)
    }
}

private func forever() async {
    await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
        kept.append(continuation)
    }
}

@Test func asyncLet() async {
    began()
    async let value: Void = forever()
    await value  // hangs: suspended
}

@Test func endlessStream() async {
    began()
    let (stream, continuation) = AsyncStream.makeStream(of: Int.self)
    kept.append(continuation)
    for await _ in stream {}  // hangs: suspended
}

@Test func taskValue() async {
    began()
    let task = Task { await forever() }
    await task.value  // hangs: suspended
}

@Test func taskGroup() async {
    began()
    await withTaskGroup(of: Void.self) { group in
        group.addTask { await forever() }
        await group.waitForAll()  // hangs: suspended
    }
}

@Test func longTaskSleep() async throws {
    began()
    try await Task.sleep(nanoseconds: 100_000_000_000_000)  // hangs: suspended
}

private actor Client {
    private var answer: CheckedContinuation<Void, Never>?
    func ask(_ server: Server) async {
        await server.answer(self)
        answer?.resume()
    }
    func wait() async { await withCheckedContinuation { answer = $0 } }  // hangs: suspended (actorThatWaitsForItself)
}

private actor Server {
    func answer(_ client: Client) async { await client.wait() }
}

@Test func actorThatWaitsForItself() async {
    began()
    await Client().ask(Server())
}

@Test func blockedTask() async {
    began()
    let task = Task.detached {
        began("blockedTask.inside")
        DispatchSemaphore(value: 0).wait()  // hangs: blocked
    }
    await task.value
}

@Test func blockedChildTask() async {
    began()
    await withTaskGroup(of: Void.self) { group in
        group.addTask {
            began("blockedChildTask.inside")
            sleep(100_000)  // hangs: blocked
        }
        await group.waitForAll()
    }
}
