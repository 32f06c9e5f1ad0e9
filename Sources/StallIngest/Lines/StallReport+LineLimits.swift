// The values that a report in a line may hold: the same ranges as in a store.

internal import StallModel
internal import StallQuery
internal import StallStore

extension StallReport {
    /// - Throws: `LineFault` for values that no store accepts.
    func checkLimits(_ origin: ReportOrigin?) throws(LineFault) {
        func expect(_ isWithin: Bool, _ reason: String) throws(LineFault) {
            if !isWithin { throw LineFault(line: 0, reason: reason) }
        }
        func expect(_ text: String?, _ limit: Int, _ key: String) throws(LineFault) {
            try expect(text?.utf8.count ?? 0 <= limit, "has more than \(limit) bytes in \(key)")
        }
        let times = 0...ValueLimits.time_us
        try expect(times.contains(start.microseconds), "has a start before 1970 or after 9999")
        try expect(
            times.contains(run.started.microseconds), "has a run.started before 1970 or after 9999")
        try expect(run.pid >= 0, "has a pid out of range")
        for (text, key) in [
            (run.app, "app"), (run.version, "version"), (run.host, "host"), (loop, "loop"),
            (run.bootID, "run.boot_id"), (run.os ?? "", "os"), (run.device ?? "", "device"),
        ] { try expect(text, ValueLimits.nameBytes, key) }
        try expect(mode, ValueLimits.labelBytes, "mode")
        try expect(activity, ValueLimits.labelBytes, "activity")
        try expect(
            run.buildID?.bytes.count ?? 0 <= ValueLimits.buildIDBytes,
            "has a build_id that is too long")
        try expect(
            samples.count <= ValueLimits.samplesOfReport,
            "has more than \(ValueLimits.samplesOfReport) samples")
        try expect(
            threads.count <= ValueLimits.threadsOfReport,
            "has more than \(ValueLimits.threadsOfReport) threads")
        // A line that named no store was given a number of all the bits there are, and is written with it.
        if let origin, origin != LineImporter.originNowhere(id) {
            try expect(
                origin.revision <= ValueLimits.revision, "has a seq or revision out of range")
        }
        for frames in samples.map(\.frames) + threads.map(\.frames) {
            try expect(
                frames.count <= ValueLimits.entriesOfStack,
                "has more than \(ValueLimits.entriesOfStack) frames in a stack")
            for frame in frames {
                try expect(frame.function, ValueLimits.functionBytes, "function")
                try expect(frame.rawName, ValueLimits.functionBytes, "raw_name")
                try expect(frame.file, ValueLimits.pathBytes, "file")
                try expect(frame.imagePath, ValueLimits.pathBytes, "image")
                try expect(
                    0...Int(Int32.max) ~= frame.line ?? 0, "has a line of source out of range")
            }
        }
    }
}
