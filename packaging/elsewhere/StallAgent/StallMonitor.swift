// The agent where there is none: what apps call most, doing nothing. It was compiled on Linux only. The rest of the interface,
// and the run loop, want `#if os(Linux)`.

public import Dispatch
public import Foundation

/// Watches nothing: there is no agent for this system.
public final class StallMonitor: Sendable {
    /// What the agent for Linux is told; nothing here looks at it.
    public struct Configuration: Sendable {
        public var app, version, store: String
        public var threshold: Duration
        public var isEnabled = false

        public init(
            app: String, version: String, store: String = "stalls.sqlite",
            threshold: Duration = .milliseconds(250), symbolizes: Bool = true
        ) {
            (self.app, self.version, self.store, self.threshold) = (app, version, store, threshold)
        }
    }

    private init() {}
    public static func start(_ configuration: Configuration) throws -> StallMonitor { .init() }
    public func stop() {}
    public func selfTest() -> [SelfTestFinding] { [] }
    public func watch(_ loop: RunLoop, as name: String, threshold: Duration? = nil) {}
    public func watch(_ queue: DispatchQueue, as name: String, threshold: Duration? = nil) {}
    public func watchMainRunLoop(threshold: Duration? = nil) {}
    public func watchMainActor(threshold: Duration? = nil) {}
    public func watchCooperativePool(threshold: Duration? = nil) {}
    public func watchTasks(threshold: Duration? = nil) {}
    public func watchCurrentThread(as name: String, threshold: Duration? = nil) -> WatchedThread {
        .init()
    }
    public func withActivity<Result, Failure: Error>(
        _ label: String, _ body: () throws(Failure) -> Result
    ) throws(Failure) -> Result { try body() }
    public func expected<Result, Failure: Error>(
        _ name: String, atMost limit: Duration = .seconds(10), _ body: () throws(Failure) -> Result
    ) throws(Failure) -> Result { try body() }
}

/// Marks of a thread that is not watched.
public final class WatchedThread: @unchecked Sendable {
    public var activity: String?
    public func begin() {}
    public func end() {}
}

/// A result of the self test of one part of the agent for Linux; here there is none.
public struct SelfTestFinding: Sendable, Hashable {
    public struct Loss: Sendable, Hashable {
        public let what, effect: String
        public let remedy: String?
    }
    public let part, verdict: String
    public let losses: [Loss]
}
