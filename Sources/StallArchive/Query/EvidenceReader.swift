// Puts shared evidence and a report's numbers together again. The file may be a source's: its content is checked.

package import StallModel
package import StallStore

/// Reads causes whose evidence is shared, and those that have it as text.
package final class EvidenceReader {
    private let find: Statement
    private var known: [Int64: [UInt8]] = [:]

    package init(_ connection: Connection) throws {
        find = try connection.prepare(
            "select name, format from evidence_fact where evidence = ? order by position")
    }

    /// The cause of a row of `ReportRow.selected`.
    package func cause(ofReport rows: Statement) throws -> StallCause? {
        try cause(rows, at: Self.causePlace, evidence: Self.evidencePlace)
    }

    /// The same as it is written by an agent.
    package func storedCause(ofReport rows: Statement) throws -> StoredCause? {
        try storedCause(rows, at: Self.causePlace, evidence: Self.evidencePlace)?.stored
    }

    private static let causePlace = ReportRow.place(of: "cause")
    private static let evidencePlace = ReportRow.place(of: "evidence")

    /// A cause in the columns `cause`, `cause_confidence` and `cause_detail`; nil where none is stored.
    ///
    /// - Parameter evidence: The column `evidence`, behind which are `evidence_numbers` and `cause_permille`.
    package func cause(_ rows: Statement, at column: CInt, evidence: CInt) throws -> StallCause? {
        rows.isNull(at: evidence)
            ? try rows.cause(at: column)
            : try storedCause(rows, at: column, evidence: evidence)?.cause
    }

    /// The same as it is written by an agent, and its meaning.
    private func storedCause(
        _ rows: Statement, at column: CInt, evidence: CInt
    ) throws -> (stored: StoredCause, cause: StallCause)? {
        guard let id = rows.optionalInteger(at: evidence) else {
            guard let cause = try rows.cause(at: column) else { return nil }
            let detail = Array(rows.blob(at: column + 2))
            return (StoredCause(cause.cause, confidence: cause.confidence, detail: detail), cause)
        }
        guard let word = try rows.causeClass(at: column) else { return nil }
        let formats = try formats(of: id)
        let confidence =
            rows.optionalInteger(at: evidence + 2).map { Double($0) / 1000 }
            ?? rows.double(at: column + 1)
        guard
            let detail = [UInt8](
                of: word, formats: formats, numbers: rows.blob(at: evidence + 1),
                remainder: rows.blob(at: column + 2)),
            let cause = detail.withUnsafeBytes({
                StallCause(word, confidence: confidence, detail: $0)
            })
        else { throw rows.damage("a report's evidence is invalid") }
        return (StoredCause(word, confidence: confidence, detail: detail), cause)
    }

    private func formats(of id: Int64) throws -> [UInt8] {
        if let formats = known[id] { return formats }
        var facts: [EvidenceFact] = []
        var byteCount = 0
        try find.bind(id)
        defer { find.reset() }
        while try find.step() {
            let (name, format) = (find.text(), find.text())
            facts.append(EvidenceFact(name: name, format: format, firstNumber: 0))
            byteCount += name.utf8.count + format.utf8.count
            guard facts.count <= SplitEvidence.factLimit, byteCount <= 2 * SplitEvidence.byteLimit
            else { throw find.damage("evidence \(id) has more facts than any report") }
        }
        guard !facts.isEmpty else {
            throw find.damage("a report refers to evidence \(id), which is missing")
        }
        if known.count > 50_000 { known.removeAll(keepingCapacity: true) }
        let formats = facts.packed
        known[id] = formats
        return formats
    }
}
