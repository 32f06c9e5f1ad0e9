// What an app, or its operator, can decide about the agent.

internal import Glibc
public import Logging

extension StallMonitor {
    /// How an agent behaves. Operators override parts of it through the environment:
    /// `STALLWATCH_DISABLED`, `STALLWATCH_THRESHOLD_MS`, `STALLWATCH_STORE` and `STALLWATCH_SETTINGS`.
    public struct Configuration: Sendable {
        /// The app's name, as reports carry it.
        public var app: String
        /// The app's version, as reports carry it.
        public var version: String
        /// The path of the SQLite store; created with its directory when it is missing.
        public var store: String
        /// How much the store may keep.
        public var storeLimits = StorageLimits()
        /// How long a loop may be busy before it is called stalled, unless `watch` says otherwise. At least 20 ms.
        public var threshold: Duration
        /// Policies of loops by the names they are watched under; they go before ``threshold``.
        public var policies: [String: StallPolicy] = [:]
        /// How many reports are kept.
        public var limits = RateLimits()
        /// What becomes of stalls while a debugger is attached.
        public var debuggerPolicy = DebuggerPolicy.record
        /// The threshold of the environment: it goes before whatever the app says of a loop.
        var operatorThreshold: Duration?
        /// The path of a JSON file with which an operator changes thresholds and limits while the app runs; nil for
        /// none. `docs/settings.md` describes it.
        public var settings: String?
        /// Whether reports carry names, files and lines. Without it they hold images and offsets only.
        public var symbolizes: Bool
        /// Whether reports carry files, lines and inlined calls too, which are read from debug information (DWARF).
        /// `stallctl symbolicate` can add them later.
        public var findsLines = true
        /// How long the agent may look for lines at a time. Names come first and need no debug information.
        public var lineBudget = Duration.milliseconds(200)
        /// How long a callback of ``StallMonitor/onStall(at:_:)`` may take. One that takes longer is not called again.
        public var callbackDeadline = Duration.seconds(5)
        /// Whose stacks a report holds.
        public var threads = ThreadScope.stalled
        /// Where the agent's own few lines go; by default to standard error.
        public var logger: Logger
        /// A disabled agent starts no thread and writes nothing; all its calls are accepted.
        public var isEnabled = true

        /// Describes an agent.
        ///
        /// - Parameters:
        ///   - app: The app's name.
        ///   - version: The app's version.
        ///   - store: The path of the store. Several processes may share one. Without it: ``defaultStore``.
        ///   - threshold: How long a loop may be busy.
        ///   - symbolizes: Whether reports carry names.
        ///   - logger: Where the agent's own lines go.
        public init(
            app: String, version: String, store: String = defaultStore,
            threshold: Duration = .milliseconds(250), symbolizes: Bool = true,
            logger: Logger = Logger(
                label: "stallwatch", factory: { StreamLogHandler.standardError(label: $0) })
        ) {
            self.app = app
            self.version = version
            self.store = store
            self.threshold = threshold
            self.symbolizes = symbolizes
            self.logger = logger
        }

        /// Where an app that names no store keeps it: in the service's state directory, where the job of stallctl's package
        /// looks for it, else `stalls.sqlite` in the directory that it is started in.
        ///
        /// **Source:** systemd.exec(5), "StateDirectory=": `STATE_DIRECTORY`, absolute paths joined with colons.
        public static var defaultStore: String {
            store(inStateDirectories: getenv("STATE_DIRECTORY").map { String(cString: $0) })
        }

        static func store(inStateDirectories directories: String?) -> String {
            guard let first = directories?.split(separator: ":").first, first.hasPrefix("/") else {
                return "stalls.sqlite"
            }
            return first + "/stalls.sqlite"
        }

        /// The variables that ``environment(_:)`` looks at.
        static let variables = [
            "STALLWATCH_DISABLED", "STALLWATCH_STORE", "STALLWATCH_SETTINGS",
            "STALLWATCH_THRESHOLD_MS",
        ]

        /// The same configuration with an operator's overrides: `STALLWATCH_DISABLED=1`, `STALLWATCH_THRESHOLD_MS`,
        /// `STALLWATCH_STORE` and `STALLWATCH_SETTINGS`. A value that cannot be read is reported to the logger and
        /// ignored.
        func environment(_ environment: [String: String]) -> Configuration {
            var configuration = self
            if let disabled = environment["STALLWATCH_DISABLED"], !["", "0"].contains(disabled) {
                configuration.isEnabled = false
            }
            if let store = environment["STALLWATCH_STORE"], !store.isEmpty {
                configuration.store = store
            }
            if let settings = environment["STALLWATCH_SETTINGS"], !settings.isEmpty {
                configuration.settings = settings
            }
            if let text = environment["STALLWATCH_THRESHOLD_MS"] {
                if let milliseconds = Int(text), milliseconds >= 20 {
                    configuration.threshold = .milliseconds(milliseconds)
                    configuration.operatorThreshold = .milliseconds(milliseconds)
                } else {
                    logger.warning(
                        "STALLWATCH_THRESHOLD_MS is \(text); expected a whole number of at least 20; ignored"
                    )
                }
            }
            return configuration
        }

        /// The same configuration with paths that stay what they are when the app changes its directory: the store is
        /// opened on another thread, and again after failures.
        func inDirectory(_ directory: String) -> Configuration {
            func absolute(_ path: String) -> String {
                path.hasPrefix("/") || directory.isEmpty ? path : directory + "/" + path
            }
            var configuration = self
            configuration.store = absolute(store)
            configuration.settings = settings.map(absolute)
            return configuration
        }
    }

    /// Whose stacks a report holds.
    public enum ThreadScope: Sendable {
        /// The stalled thread's, and those that explain its wait.
        case stalled
        /// Those of all threads of the process, once, when the threshold is crossed: one after another, each at an
        /// instant of its own, up to 512 threads and 200 ms. No thread that waits is disturbed.
        case all
    }

    /// A configuration that makes no sense; the app's own mistake, told before anything starts.
    public enum ConfigurationError: Error, Equatable, CustomStringConvertible {
        /// A threshold below 20 ms would report the scheduler's own delays.
        case thresholdTooShort(Duration)
        /// The app has no name to report under.
        case emptyAppName

        public var description: String {
            switch self {
            case .thresholdTooShort(let threshold):
                "a stall threshold must be at least 20 ms; it was \(threshold)"
            case .emptyAppName: "the app's name must not be empty"
            }
        }
    }
}
