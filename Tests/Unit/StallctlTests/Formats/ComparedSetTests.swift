import Foundation
import StallModel
import Testing

@testable import stallctl

/// Goal: the arguments of a comparison are parsed as meant.
/// Method: a current time and a time zone of the test's own.
@Suite struct ComparedSetTests {
    let now = SampleReports.noon  // 2024-11-21T14:00:00Z

    private func set(_ text: String, files: [String] = []) throws -> ComparedSet {
        try ComparedSet(text, now: now, timeZone: .gmt, exists: files.contains)
    }

    private func day(_ number: Int64, hour: Int64 = 0) -> UnixTime {
        UnixTime(microseconds: now.microseconds + ((number - 21) * 24 + hour - 14) * 3_600_000_000)
    }

    @Test func `versions, ranges and stores are distinguished`() throws {
        #expect(try set("2.3.0") == .version("2.3.0"))
        #expect(try set("2.3.0", files: ["2.3.0"]) == .store(path: "2.3.0"))
        #expect(try set("old.sqlite") == .store(path: "old.sqlite"))
        #expect(try set("../old") == .store(path: "../old"))
    }

    @Test func `a range ends with the last hour of its last day`() throws {
        #expect(try set("2024-11-01..2024-11-07") == .range(since: day(1), until: day(8)))
        #expect(
            try set("2024-11-01T06:00..2024-11-07T12:00")
                == .range(since: day(1, hour: 6), until: day(7, hour: 12)))
        #expect(try set("7d..") == .range(since: day(14, hour: 14), until: nil))
        #expect(try set("..yesterday") == .range(since: nil, until: day(21)))
    }

    @Test(arguments: ["..", "2024-11-07..2024-11-01", "x..y", "2024-02-30.."])
    func `a range that is none is refused`(text: String) {
        #expect(throws: TimeArgumentError.self) { try set(text) }
    }
}
