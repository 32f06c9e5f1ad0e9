// A process run in the cluster's table, written and read.

internal import StallModel

extension ProcessRun {
    /// The columns that `write` writes and `init(_:)` reads, in their order.
    static let clusterColumns: ClickHouseQuery =
        "uuid, app, version, build_id, host, pid, boot_id, start_ticks, started_us, os, device"
    static let clusterColumnCount = 11

    func write(to out: inout TabSeparatedWriter) {
        out.add(id)
        out.add(app)
        out.add(version)
        out.add(buildID?.bytes ?? [])
        out.add(host)
        out.add(Int64(pid))
        out.add(bootID)
        out.add(Int64(bitPattern: startTicks))
        out.add(started.microseconds)
        for text in [os, device] {
            if let text { out.add(text) } else { out.null() }
        }
    }

    init(_ row: TabSeparatedRows) throws {
        self.init(
            id: try row.uniqueID(), app: try row.text(), version: try row.text(),
            buildID: try row.buildID(), host: try row.text(),
            pid: Int32(truncatingIfNeeded: try row.integer() as Int64), bootID: try row.text(),
            startTicks: UInt64(bitPattern: try row.integer()),
            started: UnixTime(microseconds: try row.integer()),
            os: try row.optionalText(), device: try row.optionalText())
    }
}
