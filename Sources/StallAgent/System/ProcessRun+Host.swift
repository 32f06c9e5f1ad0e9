// Identifies this process among all others. Neither argv nor the environment: they may contain secrets.

internal import CLinux
internal import Glibc
internal import StallModel
internal import StallStore

extension ProcessRun {
    /// The calling process.
    static func current(app: String, version: String, buildID: BuildID?) -> ProcessRun {
        let now = UnixTime(microseconds: stall_unix_us())
        let machine = ProcessLife.current()
        let model = MachineModel.current()
        return ProcessRun(
            id: UniqueID(version7At: now), app: app, version: version,
            buildID: buildID,
            host: machine.host, pid: getpid(), bootID: machine.bootID,
            startTicks: startTicks(), started: now, os: model.os,
            device: model.device)
    }

    /// In clock ticks since boot; 0 if `/proc` is unreadable.
    private static func startTicks() -> UInt64 {
        var state = stall_thread_state()
        return stall_process_read_state(getpid(), &state) == 0 ? state.start_ticks : 0
    }
}
