// One crash report as text: its header, its threads and its binaries.

internal import StallModel

/// Takes the lines of a report one by one.
struct AppleCrashBlock {
    private let line: Int
    private var header: [String: String] = [:]
    private var threads: [(header: ThreadHeader, frames: [AppleFrameLine])] = []
    private var names: [Int32: ThreadHeader] = [:]
    private var images: [Image] = []
    private var section = Section.header
    /// All of it before the threads: the reasons for the end of the process take several lines.
    private var reasons = ""

    private enum Section { case header, thread, images, other }

    init(line: Int) { self.line = line }

    var hasThreads: Bool { !threads.isEmpty }

    mutating func take(_ line: String) {
        if let header = ThreadHeader(line: line) {
            if header.isNameOnly {
                names[header.number] = header
            } else {
                threads.append((header, []))
                section = .thread
            }
        } else if line.hasPrefix("Binary Images:") {
            section = .images
        } else if section == .thread, let frame = AppleFrameLine(line) {
            threads[threads.count - 1].frames.append(frame)
        } else if section == .thread, !line.isEmpty {
            // The registers, or noise between two frames; a frame that follows is of the same thread.
            if line.contains("Thread State") || line.hasSuffix(":") { section = .other }
        } else if section == .images {
            if let image = AppleImageLine.image(line) { images.append(image) }
        } else if section == .header {
            takeHeader(line)
        }
    }

    private mutating func takeHeader(_ line: String) {
        reasons += line + "\n"
        guard let colon = line.firstIndex(of: ":") else { return }
        let key = line[..<colon].trimmed
        if header[key] == nil { header[key] = line[line.index(after: colon)...].trimmed }
    }

    // MARK: The report

    func report() -> ForeignReport {
        let sorted = SortedImages(images)
        var report = ForeignReport(kind: .crash, line: line)
        let (process, pid) = AppleHeader.process(header["Process"] ?? "")
        report.app = process
        report.pid = pid
        report.version = AppleHeader.version(header["Version"], isSwapped: isVersionSwapped)
        report.start = header["Date/Time"].flatMap(AppleHeader.time)
        report.takeMachine(os: header["OS Version"], device: header["Hardware Model"])
        report.images = images
        report.identifier = header["Incident Identifier"].flatMap { $0.contains("?") ? nil : $0 }
        // The kernel's name of a process is cut off, which PLCrashReporter writes.
        let path = header["Path"] ?? ""
        if let name = path.split(separator: "/").last, name.hasPrefix(process) {
            report.app = String(name)
        }
        let executable = images.first { $0.path == path } ?? images.first { $0.name == report.app }
        report.buildID = executable?.buildID
        report.threads = threads.map { header, frames in
            var thread = ForeignThread(
                number: header.number, name: names[header.number]?.name ?? header.name,
                isMain: header.isMain || names[header.number]?.isMain == true)
            if !frames.isEmpty {
                thread.samples = [
                    ForeignSample(frames: frames.enumerated().map { $1.frame($0, sorted) })
                ]
            }
            return thread
        }
        judge(&report)
        return report
    }

    /// Apple wrote the build first until iOS 14; PLCrashReporter writes it last, as Apple does now.
    private var isVersionSwapped: Bool {
        guard header["Exception Type"]?.contains("EXC_") == true,
            let system = header["OS Version"],
            system.hasPrefix("iPhone OS ") || system.hasPrefix("iOS "),
            let major = Int(
                system.drop { !$0.isNumber }.prefix { $0.isNumber })
        else { return false }
        return major <= 14
    }

    /// Whether the process was stuck: a report of a live process by a watchdog of the app's, or an end by the system's.
    private func judge(_ report: inout ForeignReport) {
        let isLive =
            header["Exception Type"]?.hasPrefix("SIGTRAP") == true
            && header["Exception Codes"]?.contains("TRAP_TRACE") == true
            && threads.contains { $0.frames.contains { $0.tail.contains("generateLiveReport") } }
        let main = threads.firstIndex { $0.header.number == 0 }
        if header["Exception Type"] == AppleCrashReport.exceptionType {
            report.kind = .hang
            report.duration = AppleHeader.ownDuration(reasons)
            report.stalledThread = main
        } else if isLive {
            report.kind = .hang
            report.stalledThread = main
            // The one that took the report is marked as crashed and is no part of the stall.
        } else if report.judge(termination: reasons, main: main) {
            return
        } else if header["Exception Type"]?.contains("EXC_RESOURCE") == true {
            report.kind = .other("a report of used resources")
        } else {
            report.stalledThread = threads.firstIndex { $0.header.isCrashed } ?? main
        }
    }
}

extension Substring {
    /// Without spaces at both ends.
    var trimmed: String {
        var text = drop(while: \.isWhitespace)
        while text.last?.isWhitespace == true { text.removeLast() }
        return String(text)
    }
}
