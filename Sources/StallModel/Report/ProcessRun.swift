// One run of one process with an agent. Neither argv nor environment: they may contain secrets.

/// The process that reports come from.
public struct ProcessRun: Hashable, Sendable {
    /// Identifies this run, across stores.
    public var id: UniqueID
    /// The app's configured name.
    public var app: String
    /// The app's configured version.
    public var version: String
    /// The build ID of the main executable.
    public var buildID: BuildID?
    /// The machine's host name.
    public var host: String
    /// The process id.
    public var pid: Int32
    /// The kernel's boot id: distinguishes a reused pid from the same process.
    public var bootID: String
    /// The process's start time in clock ticks since boot (`/proc/self/stat` field 22).
    public var startTicks: UInt64
    /// When the agent started in it.
    public var started: UnixTime
    /// The operating system and its version, without its build: `iOS 17.4.1`, `Debian GNU/Linux 12`. Nil if unknown.
    public var os: String?
    /// The machine's model as its maker names it: `iPhone14,2`. Nil if unknown.
    public var device: String?

    package init(
        id: UniqueID, app: String, version: String, buildID: BuildID?, host: String, pid: Int32,
        bootID: String, startTicks: UInt64, started: UnixTime, os: String? = nil,
        device: String? = nil
    ) {
        self.id = id
        self.app = app
        self.version = version
        self.buildID = buildID
        self.host = host
        self.pid = pid
        self.bootID = bootID
        self.startTicks = startTicks
        self.started = started
        self.os = os?.isEmpty == true ? nil : os
        self.device = device?.isEmpty == true ? nil : device
    }
}
