// Gives evidence that many reports share its row, once.

internal import StallArchive
internal import StallModel
internal import StallStore

/// Finds or adds shared evidence. Works within the transaction of its caller; after a rollback, `forget`.
final class EvidenceWriter {
    private let find, add, addFact: Statement
    private var known: [[UInt8]: Int64] = [:]
    private var rowCount: Int64
    /// The number of rows beyond which new evidence stays text: an app whose evidence is never the same twice, by the
    /// names of its files, would pay three times for it.
    private static let rowLimit: Int64 = 20_000

    init(_ connection: Connection) throws {
        rowCount = try connection.prepare("select count(*) from evidence").number()
        find = try connection.prepare("select id from evidence where hash = ?")
        add = try connection.prepare("insert into evidence (hash) values (?)")
        addFact = try connection.prepare(
            """
            insert into evidence_fact (evidence, position, name, format, first_number)
            values (?, ?, ?, ?, ?)
            """)
    }

    func forget() { known.removeAll(keepingCapacity: true) }

    /// How a cause's evidence is written; nil where it stays in the cause's detail.
    func share(_ cause: StoredCause?) throws -> SharedEvidence? {
        guard let cause,
            let split = cause.detail.withUnsafeBytes({
                SplitEvidence(detail: $0, of: cause.cause)
            }),
            let id = try id(of: split.formats)
        else { return nil }
        return SharedEvidence(id: id, numbers: split.numbers, detail: split.remainder)
    }

    private func id(of formats: [UInt8]) throws -> Int64? {
        if let id = known[formats] { return id }
        guard let facts = [EvidenceFact](packed: formats) else { return nil }
        let hash = facts.hash
        let id: Int64
        if let found = try find.found(hash) {
            id = found
        } else {
            guard rowCount < Self.rowLimit else { return nil }
            rowCount += 1
            id = try add.insert(hash)
            for (position, fact) in facts.enumerated() {
                try addFact.run(id, Int64(position), fact.name, fact.format, fact.firstNumber)
            }
        }
        if known.count > 50_000 { forget() }
        known[formats] = id
        return id
    }
}
