// The values that a row in a line may hold: the same ranges as in a store.

internal import StallModel
internal import StallQuery
internal import StallStore

extension PortableRow {
    /// - Throws: `LineFault` for values that no store accepts.
    func checkLimits() throws(LineFault) {
        switch self {
        case .report(let row): try row.report.checkLimits(row.origin)
        case .exposure(let row):
            let stretch = row.exposure
            try stretch.run.checkLimits()
            try expectRevision(row.revision)
            try expectName(stretch.loop, "loop")
            try expect(
                0...ValueLimits.time_us ~= stretch.start.microseconds,
                "has a start before 1970 or after 9999")
            try expect(
                0...ValueLimits.watched_ns ~= stretch.watched.nanoseconds,
                "has a period of more than 400 days in watched_ms")
            try expect(
                0...ValueLimits.count ~= Int64(stretch.microStallCount),
                "has a count out of range in micro_stalls")
        case .suppression(let row):
            try row.stalls.run.checkLimits()
            try expectRevision(row.revision)
            try expectName(row.stalls.loop, "loop")
            try expectCount(Int64(row.stalls.count))
        case .loss(let row):
            try row.run.checkLimits()
            try expectRevision(row.revision)
            try expectCount(row.count)
        case .watchedLoop(let row):
            try row.run.checkLimits()
            try expectName(row.loop, "loop")
        case .run(let row):
            try row.run.checkLimits()
            try expect(
                row.images.count <= ValueLimits.loadsOfRun,
                "has more than \(ValueLimits.loadsOfRun) images")
            for image in row.images {
                try expectPath(image.path, "images")
                try expectBuildID(image.buildID)
            }
        case .location(let row):
            try row.run?.checkLimits()
            try expectRevision(row.revision)
            try expectPath(row.location.imagePath, "location.image")
            try expectBuildID(row.location.buildID)
            try expect(
                row.frames.count <= ValueLimits.frameCount,
                "has more than \(ValueLimits.frameCount) functions")
            for frame in row.frames {
                try expect(
                    frame.function?.utf8.count ?? 0 <= ValueLimits.functionBytes
                        && frame.rawName?.utf8.count ?? 0 <= ValueLimits.functionBytes,
                    "has more than \(ValueLimits.functionBytes) bytes in functions")
                try expectPath(frame.file, "functions")
                try expect(
                    0...Int(Int32.max) ~= frame.line ?? 0, "has a line of source out of range")
            }
        case .unknown: break
        }
    }
}

extension ProcessRun {
    fileprivate func checkLimits() throws(LineFault) {
        try expect(pid >= 0, "has a pid out of range")
        for (text, key) in [
            (app, "app"), (version, "version"), (host, "host"), (bootID, "run.boot_id"),
            (os ?? "", "os"), (device ?? "", "device"),
        ] { try expectName(text, key) }
        try expectBuildID(buildID)
        try expect(
            0...ValueLimits.time_us ~= started.microseconds,
            "has a run.started before 1970 or after 9999")
    }
}

private func expect(_ isWithin: Bool, _ reason: String) throws(LineFault) {
    if !isWithin { throw LineFault(line: 0, reason: reason) }
}

private func expectName(_ text: String, _ key: String) throws(LineFault) {
    let limit = ValueLimits.nameBytes
    try expect(text.utf8.count <= limit, "has more than \(limit) bytes in \(key)")
}

private func expectPath(_ text: String?, _ key: String) throws(LineFault) {
    let limit = ValueLimits.pathBytes
    try expect(text?.utf8.count ?? 0 <= limit, "has more than \(limit) bytes in \(key)")
}

private func expectBuildID(_ id: BuildID?) throws(LineFault) {
    try expect(
        id?.bytes.count ?? 0 <= ValueLimits.buildIDBytes, "has a build_id that is too long")
}

private func expectRevision(_ revision: Int64) throws(LineFault) {
    try expect(0...ValueLimits.revision ~= revision, "has a revision out of range")
}

private func expectCount(_ count: Int64) throws(LineFault) {
    try expect(0...ValueLimits.count ~= count, "has a count out of range in count")
}
