// The agent's configuration, by the app and by its operator.

internal import Glibc
public import Logging

extension StallMonitor {
    /// The agent's configuration. Operators override parts of it by environment variables: `STALLWATCH_DISABLED`,
    /// `STALLWATCH_THRESHOLD_MS`, `STALLWATCH_STORE` and `STALLWATCH_SETTINGS`.
    public struct Configuration: Sendable {
        /// The app's name in reports.
        public var app: String
        /// The app's version in reports.
        public var version: String
        /// The path of the SQLite store. The file and its directory are created if missing.
        public var store: String
        /// The limits of the store's size and age.
        public var storeLimits = StorageLimits()
        /// How long a loop may be busy before it is called stalled, unless `watch` specifies another threshold. At
        /// least 20 ms.
        public var threshold: Duration
        /// Policies of loops by target name; they take precedence over ``threshold``.
        public var policies: [String: StallPolicy] = [:]
        /// The limits on the number of reports.
        public var limits = RateLimits()
        /// How stalls are handled while a debugger is attached.
        public var debuggerPolicy = DebuggerPolicy.record
        /// The threshold from the environment. Takes precedence over everything that the app sets.
        var operatorThreshold: Duration?
        /// The path of a JSON file with which an operator changes thresholds and limits while the app runs; nil for
        /// none. `docs/settings.md` describes it.
        public var settings: String?
        /// Whether reports contain function names, files and lines. Otherwise they contain images and offsets only.
        public var symbolizes: Bool
        /// Whether reports also contain files, lines and inlined calls, which are read from debug information (DWARF).
        /// `stallctl symbolicate` can add them later.
        public var findsLines = true
        /// CPU time of the first search for lines and inlined calls of a report. The rest is searched after it was written.
        /// Names come first and need no debug information.
        public var lineBudget = Duration.milliseconds(200)
        /// Time limit for a callback of ``StallMonitor/onStall(at:_:)``. A callback that exceeds it is not called
        /// again.
        public var callbackDeadline = Duration.seconds(5)
        /// The threads whose stacks are in a report.
        public var threads = ThreadScope.stalled
        /// Receives the agent's own log messages; standard error by default.
        public var logger: Logger
        /// A disabled agent starts no thread and writes nothing; all calls are accepted and do nothing.
        public var isEnabled = true

        /// Creates a configuration.
        ///
        /// - Parameters:
        ///   - app: The app's name.
        ///   - version: The app's version.
        ///   - store: The path of the store. Several processes can share one. Default: ``defaultStore``.
        ///   - threshold: How long a loop may be busy.
        ///   - symbolizes: Whether reports contain function names.
        ///   - logger: Receives the agent's own log messages.
        public init(
            app: String, version: String, store: String = defaultStore,
            threshold: Duration = .milliseconds(250), symbolizes: Bool = true,
            logger: Logger = defaultLogger
        ) {
            self.app = app
            self.version = version
            self.store = store
            self.threshold = threshold
            self.symbolizes = symbolizes
            self.logger = logger
        }

        /// Writes to standard error, in swift-log's format and without stdio. It never waits for a reader: lines that
        /// standard error cannot take at once are dropped, and counted before the next line.
        public static var defaultLogger: Logger {
            Logger(label: "stallwatch", factory: { StandardErrorLog(label: $0) })
        }

        /// The default path of the store: in the service's state directory, where the job of stallctl's package expects
        /// it, else `stalls.sqlite` in the working directory at the start.
        ///
        /// **Source:** systemd.exec(5), "StateDirectory=": `STATE_DIRECTORY`, absolute paths joined with colons.
        public static var defaultStore: String {
            store(inStateDirectories: processEnvironment(["STATE_DIRECTORY"])["STATE_DIRECTORY"])
        }

        static func store(inStateDirectories directories: String?) -> String {
            guard let first = directories?.split(separator: ":").first, first.hasPrefix("/") else {
                return "stalls.sqlite"
            }
            return first + "/stalls.sqlite"
        }

        /// The variables that ``environment(_:)`` reads.
        static let variables = [
            "STALLWATCH_DISABLED", "STALLWATCH_STORE", "STALLWATCH_SETTINGS",
            "STALLWATCH_THRESHOLD_MS",
        ]

        /// This configuration with an operator's overrides: `STALLWATCH_DISABLED=1`, `STALLWATCH_THRESHOLD_MS`,
        /// `STALLWATCH_STORE` and `STALLWATCH_SETTINGS`. Invalid values are logged and ignored.
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

        /// This configuration with absolute paths. The store is opened on another thread, and again after failures; the
        /// app may have changed its working directory by then.
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

    /// The threads whose stacks are in a report.
    public enum ThreadScope: Sendable {
        /// The stalled thread, and the threads that explain its wait.
        case stalled
        /// All threads of the process, once, when the threshold is exceeded: one after another, each at its own
        /// instant, up to 512 threads and 200 ms. Waiting threads are not disturbed.
        case all
    }

    /// An invalid configuration: the app's own mistake, thrown before anything starts.
    public enum ConfigurationError: Error, Equatable, CustomStringConvertible {
        /// A threshold below 20 ms would report the scheduler's delays.
        case thresholdTooShort(Duration)
        /// Reports need an app name.
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
