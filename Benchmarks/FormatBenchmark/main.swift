// How fast reports of other programs are read, format by format: the CPU time from the bytes of a file in the page cache to
// rows that a store takes. Beside each, in the same run, the same bytes read and searched for ends of lines only.
//
//     FormatBenchmark FILE...
//
// scripts/bench-formats makes the files. The results are added to .build/bench/results.jsonl.

import BenchmarkSupport
import Glibc
import StallFormats
import StallModel
import StallQuery

private let rounds = 5

/// - Returns: The CPU time of this process for it, in seconds.
private func cpuSeconds(_ work: () -> Void) -> Double {
    func now() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }
    let start = now()
    work()
    return now() - start
}

private func stream(_ path: String) -> ByteStream {
    ByteStream(descriptor: open(path, O_RDONLY | O_CLOEXEC), closesIt: true)
}

private struct Counts: Equatable {
    var (rows, faults, bytes) = (0, 0, 0)
}

private func counts(of path: String) -> Counts {
    var options = ReadingOptions()
    options.takesAllAsStalls = true
    var feed = ForeignReports.feed(
        stream(path), options, modified: UnixTime(microseconds: 0))
    var counts = Counts()
    while !feed.hasFailed {
        do {
            guard try feed.next() != nil else { break }
            counts.rows += 1
        } catch {
            counts.faults += 1
        }
    }
    counts.bytes = feed.byteCount
    return counts
}

private func lineCount(of path: String) -> Int {
    let stream = stream(path)
    var (lines, buffer) = (0, [UInt8](repeating: 0, count: 1 << 16))
    while true {
        let count = buffer.withUnsafeMutableBytes(stream.next)
        guard count > 0 else { return lines }
        lines += buffer.prefix(count).count { $0 == 0x0a }
    }
}

var results: [BenchmarkResult] = []
print("format                        MB    rows  faults   MB/s   lines only")
for path in CommandLine.arguments.dropFirst() {
    guard let format = ForeignReports.format(of: stream(path)) else {
        print("\(path): is in no format that is read")
        exit(1)
    }
    let found = counts(of: path)
    let megabytes = Double(found.bytes) / 1e6
    let read = BenchmarkResult(
        name: "format.\(format.rawValue)", contestant: "reader", size: found.bytes,
        values: (0..<rounds).map { _ in
            megabytes / cpuSeconds { precondition(counts(of: path) == found) }
        }, unit: "MB/s")
    let lines = BenchmarkResult(
        name: "format.\(format.rawValue)", contestant: "lines only", size: found.bytes,
        values: (0..<rounds).map { _ in
            megabytes / cpuSeconds { precondition(lineCount(of: path) >= 0) }
        }, unit: "MB/s")
    results += [read, lines]
    func column(_ number: Int, _ width: Int) -> String {
        let text = String(number)
        return String(repeating: " ", count: max(0, width - text.count)) + text
    }
    let name = format.rawValue.padded(to: 26)
    print(
        name + column(Int(megabytes), 6) + column(found.rows, 8) + column(found.faults, 8)
            + column(Int(read.median), 7) + column(Int(lines.median), 13))
}
do { try results.append() } catch {
    print(error)
    exit(1)
}

extension String {
    fileprivate func padded(to width: Int) -> String {
        self + String(repeating: " ", count: max(0, width - count))
    }
}
