// Groups as rows.

internal import StallModel
package import StallQuery
package import StallStore

/// The rows of `signature` and `signature_frame`.
package enum SignatureRows {
    /// Groups by the numbers of their rows: at least these, or all.
    package static func groups(
        _ connection: Connection, _ ids: [Int64]? = nil
    ) throws -> [Int64: ReportGroup] {
        try groups(
            connection, where: Connection.narrowing("id", to: ids),
            framesOf: Connection.narrowing("signature", to: ids))
    }

    /// The rows of groups with these signatures.
    static func rows(_ connection: Connection, of signatures: Set<Int64>) throws -> [Int64] {
        let condition = Connection.narrowing("hash", to: signatures.sorted())
        let rows = try connection.prepare("select hash, id from signature where \(condition)")
        var found: [Int64] = []
        while try rows.step() {
            let (hash, id) = try (rows.integer(), rows.integer())
            if signatures.contains(hash) { found.append(id) }
        }
        return found
    }

    /// The groups of these families: at least those, by the numbers of their rows.
    static func groups(
        _ connection: Connection, ofFamilies families: Set<Int64>
    ) throws -> [Int64: ReportGroup] {
        let condition = Connection.narrowing("family", to: families.sorted())
        return try groups(
            connection, where: condition,
            framesOf: "signature in (select id from signature where \(condition))")
    }

    private static func groups(
        _ connection: Connection, where condition: String, framesOf frameCondition: String
    ) throws -> [Int64: ReportGroup] {
        var groups: [Int64: ReportGroup] = [:]
        let rows = try connection.prepare(
            """
            select id, hash, family, title, wait, has_app_frame, is_cut from signature
            where \(condition)
            """)
        while try rows.step() {
            let id = try rows.integer()
            groups[id] = ReportGroup(
                signature: try rows.integer(), family: try rows.integer(), title: rows.text(),
                frames: [], wait: rows.optionalText().flatMap(WaitClass.init),
                isWithoutAppFrame: try rows.integer() == 0, isCut: try rows.integer() != 0)
        }
        let frames = try connection.prepare(
            """
            select signature, name from signature_frame where \(frameCondition)
            order by signature, position
            """)
        while try frames.step() {
            let (id, name) = (try frames.integer(), frames.text())
            groups[id]?.frames.append(name)
        }
        return groups
    }
}

/// The rows of groups that are not as most are: of cut stacks, and those that share their hash.
struct SpecialSignatures {
    /// Rows of groups whose stacks were cut, with their families.
    private(set) var cut: [Int64: Int64] = [:]
    /// The first row that has the same hash.
    private(set) var first: [Int64: Int64] = [:]

    private var byHash: [Int64: Int64] = [:]

    init() {}

    /// Notes a group of reports that are read and grouped one by one.
    mutating func add(_ group: ReportGroup, row: Int64) {
        if group.isCut { cut[row] = group.family }
        if let known = byHash[group.signature] { first[row] = known }
        byHash[group.signature] = first[row] ?? row
    }

    /// Notes a group whose stacks were cut.
    mutating func add(cut row: Int64, ofFamily family: Int64) { cut[row] = family }

    init(_ connection: Connection) throws {
        let rows = try connection.prepare(
            "select is_cut, is_variant, id, family from signature where is_cut = 1 or is_variant = 1"
        )
        var hasVariants = false
        while try rows.step() {
            let (isCut, isVariant) = try (rows.integer() != 0, rows.integer() != 0)
            let (id, family) = try (rows.integer(), rows.integer())
            if isCut { cut[id] = family }
            hasVariants = hasVariants || isVariant
        }
        guard hasVariants else { return }
        let same = try connection.prepare(
            """
            select id, hash from signature
            where hash in (select hash from signature where is_variant = 1) order by id
            """)
        while try same.step() {
            let (id, hash) = try (same.integer(), same.integer())
            first[id] = byHash[hash] ?? id
            byHash[hash] = first[id]
        }
    }
}
