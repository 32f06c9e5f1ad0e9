// One line of Swift Testing's event stream. The stream is written by the tested program's process, so any byte may be
// wrong: a line that is not understood is no event.
//
// Source: Swift Testing, Documentation/ABI/JSON.md; as written by Swift 6.3.1.

internal import Foundation

/// A test function or a suite.
struct TestDescription: Equatable {
    var id: String
    /// As it is written in the source, or its display name.
    var name: String
    /// `Module/File.swift`
    var fileID: String?
    var path: String?
    var line: Int?
    var isSuite = false

    /// `Module.Suite/function(labels:)`. The id is that and `/File.swift:6:2`; a raw name may contain any of its
    /// separators.
    var idWithoutFile: Substring {
        guard let fileID, let file = fileID.split(separator: "/").last,
            let place = id.range(of: "/\(file):", options: .backwards)
        else { return Substring(id) }
        return id[..<place.lowerBound]
    }

    /// Whether a demangled name is that of the test's function, or of a closure in it.
    func isNamed(in demangled: String) -> Bool {
        let name = function
        guard !name.isEmpty else { return false }
        let isRaw = idWithoutFile.contains("`\(name)`")
        let needle = isRaw ? "`\(name)`(" : name + "("
        // `Suite.sums(` in a suite. Suites' own raw names are in backticks there, too.
        var suite: Substring?
        let path = idWithoutFile
        if !isRaw, let slash = path.lastIndex(of: "/") {
            suite = path[..<slash].split(separator: "/").last
            if !path[..<slash].contains("/") {
                suite = suite.map { $0.split(separator: ".", maxSplits: 1).last ?? $0 }
            }
        }
        var rest = demangled[...]
        while let found = rest.range(of: needle) {
            let before = rest[..<found.lowerBound]
            if isRaw { return true }
            let isWhole =
                before.last.map { !$0.isLetter && !$0.isNumber && $0 != "_" && $0 != "`" } ?? true
            if let suite {
                if isWhole, before.hasSuffix("\(suite).") { return true }
            } else if isWhole, before.last != "." {
                return true
            }
            rest = rest[found.upperBound...]
        }
        return false
    }

    /// The function's name as the compiler has it, without suites, labels and backticks: `sums`.
    var function: String {
        let text = idWithoutFile
        if let raw = text.firstIndex(of: "`"), let end = text.lastIndex(of: "`"), raw < end {
            return String(text[text.index(after: raw)..<end])
        }
        let last = text.split(separator: "/").last ?? text
        let afterModule = text.contains("/") ? last : last.drop { $0 != "." }.dropFirst()
        let name = afterModule.isEmpty ? last : afterModule
        return String(name.prefix { $0 != "(" })
    }
}

enum TestEvent: Equatable {
    case described(TestDescription)
    case started(id: String, at: Date?)
    case ended(id: String)
    case caseStarted(id: String, name: String, at: Date?)
    case caseEnded(id: String, name: String)
    case runStarted
    case runEnded
    /// Anything else that a stream may contain: an issue, an attachment.
    case other

    /// Nil if the line is none of the stream's.
    init?(_ line: some Collection<UInt8>) {
        guard let line = try? JSONDecoder().decode(Line.self, from: Data(line)) else { return nil }
        let content = line.payload
        let instant = content.instant?.since1970
        let time = instant.flatMap { $0.isFinite ? Date(timeIntervalSince1970: $0) : nil }
        let id = content.testID ?? ""
        switch (line.kind, content.kind) {
        case ("test", let kind):
            guard let id = content.id, !id.isEmpty else { return nil }
            let place = content.sourceLocation
            self = .described(
                TestDescription(
                    id: id, name: content.displayName ?? content.name ?? id, fileID: place?.fileID,
                    path: place?.filePath ?? place?._filePath, line: place?.line,
                    isSuite: kind == "suite"))
        case ("event", "testStarted") where !id.isEmpty: self = .started(id: id, at: time)
        case ("event", "testEnded") where !id.isEmpty, ("event", "testSkipped") where !id.isEmpty:
            self = .ended(id: id)
        case ("event", "testCaseStarted") where !id.isEmpty:
            self = .caseStarted(id: id, name: content._testCase?.displayName ?? "", at: time)
        case ("event", "testCaseEnded") where !id.isEmpty:
            self = .caseEnded(id: id, name: content._testCase?.displayName ?? "")
        case ("event", "runStarted"): self = .runStarted
        case ("event", "runEnded"): self = .runEnded
        case ("event", _): self = .other
        default: return nil
        }
    }

    private struct Line: Decodable {
        var kind: String
        var payload: Content
    }

    private struct Content: Decodable {
        var kind: String?
        var id: String?
        var testID: String?
        var name: String?
        var displayName: String?
        var sourceLocation: Place?
        var instant: Instant?
        var _testCase: Case?
    }

    private struct Place: Decodable {
        var fileID: String?
        var filePath: String?
        var _filePath: String?
        var line: Int?
    }

    private struct Instant: Decodable { var since1970: Double? }
    private struct Case: Decodable { var displayName: String? }
}
