// swift-profile-recorder's own format, which its other formats are made from: addresses, and the binaries around them.
//
//     [SWIPR] VMAP {"path": "/usr/bin/app", ..., "segmentSlide": "0x55d0", "segmentStartAddress": ..., ...}
//     [SWIPR] SMPL {"pid": 4711, "tid": 4711, "name": "app", "timeSec": 1795310489, "timeNSec": 65287000}
//     [SWIPR] STCK {"ip": "0x7f20", "sp": "0x7ffd"}
//     [SWIPR] DONE
//
// The lines look like JSON, but names and paths in them are not escaped.
//
// **Source:** apple/swift-profile-recorder 0.3, Sources/CProfileRecorderSampler/sampler.c.

internal import StallModel
internal import StallQuery

/// Reads samples and gives a run of them as soon as it has ended.
struct ProfileRecorderRaw: FormatReader {
    static var lineLimit: Int { 1 << 16 }
    private static let (stackLimit, segmentLimit, textLimit) = (1024, 1 << 16, 1 << 17)

    private(set) var lines: TextLines
    private var runs = SampleRuns()
    private var addresses = TextNumbers()
    private var segments: [Image] = []
    /// Their load addresses are the binaries'.
    private var slides: [UInt64: UInt64] = [:]
    private var sorted = SortedImages([])
    /// The binaries come before the samples, and again in the next recording of the same text.
    private var (hasSamples, isNewRecording) = (false, false)
    private var apps: [Int32: [UInt8]] = [:]

    init(_ lines: TextLines, _ options: ReadingOptions) { self.lines = lines }

    static func recognizes(_ beginning: TextBeginning) -> Bool {
        beginning.lines.contains {
            $0.hasPrefix("[SWIPR] VERS {") || $0.hasPrefix("[SWIPR] VMAP {")
        }
    }

    mutating func next() throws(LineFault) -> ForeignReport? {
        while true {
            if let run = runs.takeEnded() { return report(run) }
            if addresses.count > Self.textLimit { addresses.removeAll() }
            if isNewRecording {
                (segments, slides, hasSamples, isNewRecording) = ([], [:], false, false)
            }
            guard let line = lines.next()?[...] else {
                runs.endAll()
                guard let run = runs.takeEnded() else { return nil }
                return report(run)
            }
            if line.begins(with: "[SWIPR] VERS {") {
                runs.endAll()
                isNewRecording = true
            } else if line.begins(with: "[SWIPR] VMAP {") {
                takeSegment(line)
            } else if line.begins(with: "[SWIPR] SMPL {") {
                try takeSample(line, lines.number)
            }
        }
    }

    private mutating func takeSegment(_ line: ArraySlice<UInt8>) {
        guard !hasSamples, segments.count < Self.segmentLimit,
            let path = line.range(of: "\"path\": \""),
            let end = line.lastRange(of: "\", \"architecture\""),
            path.upperBound < end.lowerBound,
            let slide = line.address(behind: "\"segmentSlide\": \"0x"),
            let start = line.address(behind: "\"segmentStartAddress\": \"0x"),
            let last = line.address(behind: "\"segmentEndAddress\": \"0x"), start < last,
            slide <= start
        else { return }
        segments.append(
            Image(
                path: line[path.upperBound..<end.lowerBound].text, buildID: nil, loadAddress: start,
                endAddress: last))
        slides[start] = slide
    }

    private mutating func takeSample(_ line: ArraySlice<UInt8>, _ number: Int) throws(LineFault) {
        let numbers = line.lastRange(of: "\", \"timeSec\": ")
        guard let pid = line.number(behind: "\"pid\": ").flatMap(Int32.init(exactly:)),
            let tid = line.number(behind: "\"tid\": ").flatMap(Int32.init(exactly:)),
            let name = line.range(of: "\"name\": \""), let numbers,
            name.upperBound <= numbers.lowerBound,
            let seconds = line[numbers.lowerBound...].number(behind: "\"timeSec\": "),
            let part = line[numbers.lowerBound...].number(behind: "\"timeNSec\": "),
            seconds < UsualInterval.latest / 1_000_000_000, part < 1_000_000_000
        else { throw LineFault(line: number, reason: "is no sample of swift-profile-recorder") }
        let thread = SampledThread(
            command: line[name.upperBound..<numbers.lowerBound], pid: pid, tid: tid,
            time: seconds * 1_000_000_000 + part)
        var stack: [Int32] = []
        var isTruncated = false
        while let line = lines.next()?[...] {
            guard line.begins(with: "[SWIPR] STCK {") else {
                if !line.begins(with: "[SWIPR] DONE") { lines.putBack() }
                break
            }
            guard let ip = line.range(of: "\"ip\": \"0x") else { continue }
            let digits = line[ip.upperBound...].prefix { $0.hexadecimalDigit != nil }.prefix(16)
            isTruncated = stack.count >= Self.stackLimit
            if !isTruncated { stack.append(Int32(addresses.number(of: digits))) }
        }
        if pid == tid, apps.count < 4096 { apps[pid] = Array(thread.command) }
        guard !stack.isEmpty else { return }
        if !hasSamples { sorted = SortedImages(segments) }
        hasSamples = true
        runs.add(stack, of: thread, line: number, isTruncated: isTruncated)
        if addresses.count > Self.textLimit { runs.endAll() }
    }

    private mutating func report(_ run: SampleRun) -> ForeignReport {
        var report = run.report(app: run.pid.flatMap { apps[$0] }) { numbers in
            var stack = numbers.map { frame(addresses[Int($0)].hexadecimal() ?? 0) }
            stack.completeInlined()
            return stack
        }
        report.start = run.first.map { UnixTime(microseconds: $0 / 1000) }
        return report
    }

    private func frame(_ address: UInt64) -> ForeignFrame {
        var frame = ForeignFrame()
        frame.offset = address
        if let segment = sorted.image(at: address) {
            frame.image = segment.path
            frame.offset = address - (slides[segment.loadAddress] ?? 0)
        }
        return frame
    }
}

extension ArraySlice<UInt8> {
    fileprivate func address(behind key: StaticString) -> UInt64? {
        lastRange(of: key).flatMap {
            self[$0.upperBound...].prefix { $0.hexadecimalDigit != nil }.hexadecimal()
        }
    }

    fileprivate func number(behind key: StaticString) -> Int64? {
        range(of: key).flatMap {
            self[$0.upperBound...].prefix(while: \.isDigit).decimal(Int64.self)
        }
    }
}
