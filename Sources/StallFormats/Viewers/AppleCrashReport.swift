// A report as Apple's crash text, for viewers and scripts that take only that.
//
// **Source:** Apple, "Examining the fields in a crash report".

package import StallModel
internal import StallQuery

/// Writes one report. Its stalled thread is Thread 0, marked as crashed: the one to look at.
package struct AppleCrashReport {
    /// No signal ended the process.
    static let exceptionType = "STALL"

    private let report: StallReport
    private let images: [Image]
    /// Addresses for binaries without a recorded load address: each has room of its own above all others.
    private var madeUp: [String: Image] = [:]

    /// - Parameter images: Of the report's process.
    package init(_ report: StallReport, images: [Image]) {
        self.report = report
        self.images = images.sorted { $0.loadAddress < $1.loadAddress }
    }

    /// The text, which ends in a line end.
    package mutating func text() -> String {
        // The binaries that have no address get one while the threads are written.
        let threads =
            stalledThread() + report.threads.enumerated().map { thread($1, $0 + 1) }.joined()
        return header + threads + binaryImages
    }

    // MARK: Header

    private var header: String {
        let run = report.run
        let words = run.id.description.uppercased()
        let executable = images.first { $0.buildID != nil && $0.buildID == run.buildID }
        return """
            Incident Identifier: \(report.id.dashed)
            CrashReporter Key:   \(words)
            Hardware Model:      \(text(run.device ?? ""))
            Process:             \(text(run.app)) [\(run.pid)]
            Path:                \(text(executable?.path ?? ""))
            Identifier:          \(text(run.app))
            Version:             \(text(run.version))
            Code Type:           Unknown
            Parent Process:      ??? [1]

            Date/Time:           \(time(report.start))
            Launch Time:         \(time(run.started))
            OS Version:          \(text(run.os ?? ""))
            Report Version:      104

            Exception Type:  \(Self.exceptionType)
            Exception Codes: 0x0000000000000000, 0x0000000000000000
            Crashed Thread:  0

            Application Specific Information:
            \(text(report.loop)) \(report.verdict.word) for \(report.duration.milliseconds) ms, \(report.state.word)\(cause)


            """
    }

    private var cause: String { report.cause.map { ", \($0.cause.word)" } ?? "" }

    /// `2026-11-27 09:30:00.123456 +0000`.
    private func time(_ time: UnixTime) -> String {
        String(time.rfc3339.map { $0 == "T" ? " " : $0 }).replacing("Z", with: " +0000")
    }

    /// One line without what steers a terminal; `???` for nothing.
    private func text(_ text: String) -> String {
        text.isEmpty
            ? "???"
            : String(
                String.UnicodeScalarView(text.unicodeScalars.map { $0.steersTerminal ? " " : $0 }))
    }

    // MARK: Threads

    /// The stack that most of the stall's time was spent with.
    private mutating func stalledThread() -> String {
        let stacks = Dictionary(
            grouping: report.samples.filter { !$0.isLate && !$0.frames.isEmpty }, by: \.frames)
        let heaviest = stacks.max { first, second in
            let weights = [first, second].map { $0.value.reduce(Duration.zero) { $0 + $1.weight } }
            if weights[0] != weights[1] { return weights[0] < weights[1] }
            return first.value[0].offset > second.value[0].offset
        }
        let frames = heaviest?.key ?? []
        return "Thread 0 name:  \(text(report.loop))\nThread 0 Crashed:\n" + lines(frames) + "\n"
    }

    private mutating func thread(_ thread: ThreadSnapshot, _ number: Int) -> String {
        let name = thread.name ?? ""
        let line = name.isEmpty ? "" : "Thread \(number) name:  \(text(name))\n"
        return line + "Thread \(number):\n" + lines(thread.frames) + "\n"
    }

    private mutating func lines(_ frames: [Frame]) -> String {
        var (lines, number) = ("", 0)
        // Inlined functions share the address of the one that they are in.
        for (index, frame) in frames.enumerated() {
            let physical = frames[index...].first { !$0.isInlined } ?? frame
            let address = address(of: physical)
            let place = "\(number)".padded(to: 4) + text(frame.imageName ?? "").padded(to: 30)
            lines += "\(place)\t0x\(address.hexadecimal) \(function(of: frame, physical))\n"
            number += 1
        }
        return lines
    }

    private func function(of frame: Frame, _ physical: Frame) -> String {
        guard let name = frame.rawName ?? frame.function else {
            return "0x\(base(of: physical).hexadecimal) + \(physical.offset)"
        }
        let place = frame.file.map { " (\(text($0)):\(frame.line ?? 0))" } ?? ""
        return text(name) + place
    }

    // MARK: Binaries

    private mutating func address(of frame: Frame) -> UInt64 {
        guard let path = frame.imagePath else { return frame.offset }
        if image(of: frame) == nil { place(path, frame) }
        return base(of: frame) &+ frame.offset
    }

    private func base(of frame: Frame) -> UInt64 {
        guard frame.imagePath != nil else { return 0 }
        return image(of: frame)?.loadAddress ?? 0
    }

    private func image(of frame: Frame) -> Image? {
        images.first { $0.path == frame.imagePath && $0.buildID == frame.buildID }
            ?? frame.imagePath.flatMap { madeUp[Self.key($0, frame.buildID)] }
    }

    /// In the upper half of the addresses, where no program's are.
    private mutating func place(_ path: String, _ frame: Frame) {
        let start = UInt64(1) << 63 + UInt64(madeUp.count) << 40
        madeUp[Self.key(path, frame.buildID)] = Image(
            path: path, buildID: frame.buildID, loadAddress: start, endAddress: start + 1 << 40)
    }

    private static func key(_ path: String, _ buildID: BuildID?) -> String {
        path + "\0" + (buildID?.description ?? "")
    }

    private var binaryImages: String {
        let lines = (images + madeUp.values.sorted { $0.loadAddress < $1.loadAddress }).map {
            "0x\($0.loadAddress.hexadecimal) - 0x\(($0.endAddress &- 1).hexadecimal) "
                + "\(text($0.name)) ???  <\($0.buildID?.description ?? "???")> \(text($0.path))\n"
        }
        return "Binary Images:\n" + lines.joined() + "\n"
    }
}

extension UInt64 {
    /// 16 digits.
    fileprivate var hexadecimal: String {
        let digits = String(self, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
}

extension String {
    fileprivate func padded(to width: Int) -> String {
        self + String(repeating: " ", count: Swift.max(1, width - count))
    }
}

extension UniqueID {
    /// In upper case, in groups of 8, 4, 4, 4 and 12 digits.
    fileprivate var dashed: String {
        let digits = Array(description.uppercased())
        let groups = [0..<8, 8..<12, 12..<16, 16..<20, 20..<32].map { String(digits[$0]) }
        return groups.joined(separator: "-")
    }
}
