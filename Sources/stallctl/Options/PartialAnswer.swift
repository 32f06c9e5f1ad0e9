// Answers of a cluster that lack the reports of a shard. They are given, because the others' reports are worth reading, and
// never without a word: a line for people, a key in JSON, and an exit code for scripts.

internal import StallFormats
internal import StallModel
internal import Synchronization

enum PartialAnswer {
    /// The code that a command ends with whose answer lacks reports.
    static let exitCode: Int32 = 3

    /// The servers that did not answer. A process runs one command, which reads before it writes.
    private static let servers = Mutex<Set<String>>([])

    static var missing: [String] { servers.withLock { $0.sorted() } }

    /// Notes servers that do not answer, and says so.
    static func note(_ missing: [String], of store: String) {
        let new = servers.withLock { known in
            let new = missing.filter { !known.contains($0) }
            known.formUnion(new)
            return new
        }
        guard !new.isEmpty else { return }
        let names = new.joined(separator: ", ")
        say(
            "stallctl: \(store): partial answer: no reports of \(names), which does not answer"
                .printable)
    }

    /// A sentence for documents, which outlive the message; nil for a whole answer.
    static var label: String? {
        let missing = missing
        guard !missing.isEmpty else { return nil }
        let names = missing.joined(separator: ", ")
        return "A partial answer: no reports of \(names), which did not answer.".printable
    }

    /// A line of JSON with the key `partial`, where the answer is; lines of whole answers stay as they are.
    static func labelled(_ line: String) throws -> String {
        let missing = missing
        guard !missing.isEmpty, line.hasSuffix("}\n") else { return line }
        let names = try missing.map(JSONLines.text).joined(separator: ",")
        let isEmpty = line == "{}\n"
        return line.dropLast(2) + (isEmpty ? "" : ",") + "\"partial\":[\(names)]}\n"
    }
}
