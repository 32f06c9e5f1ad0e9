// Which loops are watched, by what names, and by which policies. The last word has the operator's file, then what the app
// set at run time, then what it said when it asked to watch.

internal import StallDetection
internal import StallModel

/// The loops of one monitor.
struct WatchList {
    /// One watched loop.
    struct Entry {
        let loop: WatchedLoop
        let name: String
        /// What `watch` was told.
        let threshold: Duration?
    }

    let configuration: StallMonitor.Configuration
    private(set) var entries: [ThreadID: Entry] = [:]
    private var changed: [String: StallPolicy] = [:]
    private var settings = AgentSettings()

    init(_ configuration: StallMonitor.Configuration) { self.configuration = configuration }

    /// What a loop of this name is judged by.
    func policies(for name: String, threshold: Duration?) -> ModePolicies {
        var policy =
            changed[name] ?? threshold.map(StallPolicy.init(threshold:))
            ?? configuration.policies[name] ?? StallPolicy(threshold: configuration.threshold)
        settings.adjust(&policy, of: name)
        return policy.detection
    }

    /// Adds a loop; returns the one that was watched on its thread before.
    mutating func add(_ entry: Entry, on thread: ThreadID) -> WatchedLoop? {
        entries.updateValue(entry, forKey: thread)?.loop
    }

    mutating func remove(_ thread: ThreadID, _ loop: WatchedLoop) {
        if entries[thread]?.loop === loop { entries[thread] = nil }
    }

    mutating func change(_ policy: StallPolicy, of name: String) { changed[name] = policy }
    mutating func apply(_ settings: AgentSettings) { self.settings = settings }
    func policy(of name: String) -> StallPolicy {
        changed[name] ?? configuration.policies[name] ?? StallPolicy(threshold: configuration.threshold)
    }
}
