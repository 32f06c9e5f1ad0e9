package import StallModel
internal import StallQuery

extension StallReport {
    /// All that a reader of another program's report finds, a line a fact, as in sample-data/formats.
    package var reading: String {
        var text = """
            \(verdict.word) app=\(run.app) version=\(run.version) host=\(run.host) pid=\(run.pid) \
            start=\(start.microseconds) duration=\(duration) state=\(state.word) loop=\(loop)\(machine)

            """
        for sample in samples {
            text +=
                "  thread \(sample.thread.rawValue) weight=\(sample.weight) offset=\(sample.offset)\n"
            text += sample.frames.map(\.reading).joined()
        }
        for thread in threads {
            text += "  thread \(thread.thread.rawValue) name=\(thread.name ?? "-")\n"
            text += thread.frames.map(\.reading).joined()
        }
        return text
    }

    /// Many formats do not have it.
    private var machine: String {
        (run.os.map { " os=\($0)" } ?? "") + (run.device.map { " device=\($0)" } ?? "")
    }
}

extension Frame {
    fileprivate var reading: String {
        let place = file.map { " \($0):\(line ?? 0)" } ?? ""
        return "    \(isInlined ? "inlined" : kind.word) \(rawName ?? function ?? "-") "
            + "\(imagePath ?? "-")+0x\(String(offset, radix: 16)) \(buildID?.description ?? "-")\(place)\n"
    }
}
