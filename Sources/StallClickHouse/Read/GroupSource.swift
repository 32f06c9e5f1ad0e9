// Groups as a cluster has them.

internal import StallModel
internal import StallQuery

/// Reads groups, by the keys of their rows.
struct GroupSource {
    let server: ClickHouseServer

    /// - Parameter keys: Nil for all groups.
    func groups(_ keys: [Int64]? = nil) throws -> [Int64: ReportGroup] {
        var groups: [Int64: ReportGroup] = [:]
        for part in Self.parts(of: keys) {
            groups.merge(try self.groups(where: part.groups, framesOf: part.frames)) { known, _ in
                known
            }
        }
        return groups
    }

    /// The queries of `groups`, to be sent ahead.
    static func questions(_ keys: [Int64]?) -> [ClickHouseQuery] {
        parts(of: keys).flatMap { [question(where: $0.groups), question(framesOf: $0.frames)] }
    }

    private static func parts(
        of keys: [Int64]?
    ) -> [(groups: ClickHouseQuery, frames: ClickHouseQuery)] {
        guard let keys else { return [("1", "1")] }
        return keys.parts().map { ("key in \(list: $0)", "signature in \(list: $0)") }
    }

    /// The groups of the families that groups of truncated stacks are of: those that they may be the beginnings of.
    func ofCutFamilies() throws -> [Int64: ReportGroup] {
        try groups(where: Self.isOfCutFamily, framesOf: Self.framesOfCutFamilies)
    }

    static var questionsOfCutFamilies: [ClickHouseQuery] {
        [question(where: isOfCutFamily), question(framesOf: framesOfCutFamilies)]
    }

    private static let isOfCutFamily: ClickHouseQuery =
        "family in (select family from signature where is_cut = 1)"
    private static let framesOfCutFamilies: ClickHouseQuery =
        "signature in (select key from signature where \(isOfCutFamily))"

    /// The keys of groups with these signatures.
    func keys(of signatures: Set<Int64>) throws -> Set<Int64> {
        var keys: Set<Int64> = []
        for part in signatures.sorted().parts() {
            var rows = try server.rows(
                "select key from signature where hash in \(list: part)", columnCount: 1)
            while try rows.step() { keys.insert(try rows.integer()) }
        }
        return keys
    }

    /// Groups that are not as most are: of truncated stacks, and those that share their hash with another row.
    func special() throws -> [Int64: ReportGroup] {
        try groups(where: Self.isSpecial, framesOf: nil)
    }

    static var questionOfSpecial: ClickHouseQuery { question(where: isSpecial) }

    private static let isSpecial: ClickHouseQuery = """
        is_cut = 1 or hash in
            (select hash from signature group by hash having uniqExact(key) > 1)
        """

    private static func question(where condition: ClickHouseQuery) -> ClickHouseQuery {
        """
        select key, hash, family, title, wait, has_app_frame, is_cut from signature
        where \(condition)
        """
    }

    private static func question(framesOf condition: ClickHouseQuery) -> ClickHouseQuery {
        """
        select distinct signature, name, position from signature_frame where \(condition)
        order by signature, position
        """
    }

    private func groups(
        where condition: ClickHouseQuery, framesOf frameCondition: ClickHouseQuery?
    ) throws -> [Int64: ReportGroup] {
        var groups: [Int64: ReportGroup] = [:]
        var rows = try server.rows(Self.question(where: condition), columnCount: 7)
        while try rows.step() {
            let key: Int64 = try rows.integer()
            groups[key] = ReportGroup(
                signature: try rows.integer(), family: try rows.integer(),
                title: try rows.text(), frames: [], wait: WaitClass(rawValue: try rows.text()),
                isWithoutAppFrame: try rows.integer(as: UInt8.self) == 0,
                isCut: try rows.integer(as: UInt8.self) != 0)
        }
        guard let frameCondition else { return groups }
        rows = try server.rows(Self.question(framesOf: frameCondition), columnCount: 3)
        while try rows.step() {
            let (key, name): (Int64, String) = (try rows.integer(), try rows.text())
            rows.skipRest()
            groups[key]?.frames.append(name)
        }
        return groups
    }
}

extension Array {
    /// Parts short enough for one statement: ClickHouse limits how much it parses.
    func parts(of size: Int = 5000) -> [[Element]] {
        stride(from: 0, to: count, by: size).map { Array(self[$0..<Swift.min($0 + size, count)]) }
    }
}
