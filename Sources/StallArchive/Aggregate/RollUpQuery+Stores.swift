// One answer of several stores. Roll-ups are sums: each store adds up its own, the sums are added, and only then are groups
// of cut stacks joined and the largest groups chosen, as in one store.

internal import StallModel
internal import StallQuery
internal import StallStore

extension RollUpQuery {
    /// The answer of several stores: the sums of all of them, as one store would have them that has their reports.
    ///
    /// - Parameter queries: One for each store, with the same question, none of them used yet.
    static func answer(
        _ queries: [RollUpQuery], _ grouper: any ReportGrouper
    ) throws -> AggregateAnswer {
        var queries = queries
        for index in queries.indices { try queries[index].addAll(grouper) }
        var sum = queries.removeFirst()
        for query in queries { try sum.add(query) }
        try sum.joinCutGroups()
        return try sum.makeAnswer(listing: try sum.largest.map(sum.listed) ?? sum.shownIndices)
    }

    /// Adds up all groups with everything that is needed of the listed ones.
    private mutating func addAll(_ grouper: any ReportGrouper) throws {
        isPart = true
        // One store may have watched all of its loops, and another none.
        areMixed = true
        let isGrouped = try connection.isGrouped
        if isGrouped {
            groups = try SignatureRows.groups(connection)
            if key == .signature { special = try SpecialSignatures(connection) }
        }
        guard try isGrouped && chooseTable() else {
            return try addReports(
                from: filter.since, until: filter.until, isGrouped ? nil : grouper)
        }
        try dimensions.load(connection, filter)
        for span in spans(try addEdges()) { try addCells(span) }
    }

    /// Adds the sums of another store.
    private mutating func add(_ other: RollUpQuery) throws {
        // A store has one row for a hash and a title.
        struct Name: Hashable { var signature: Int64, title: String }
        func name(_ group: ReportGroup) -> Name {
            Name(signature: group.signature, title: group.title)
        }
        let known = Dictionary(groups.map { (name($1), $0) }, uniquingKeysWith: min)
        var rows: [Int64: Int64] = [:]
        for (row, group) in other.groups {
            if let own = known[name(group)] {
                rows[row] = own
                continue
            }
            var own = Int64(-1 - groups.count)
            while groups[own] != nil { own &-= 1 }
            groups[own] = group
            rows[row] = own
            if let family = other.special.cut[row] { special.add(cut: own, ofFamily: family) }
        }
        let places = other.dimensions.all.map { dimensions.index(of: $0) }
        for (place, tally) in zip(places, other.dimensionTotals) {
            while dimensionTotals.count <= place { dimensionTotals.append(DimensionTally()) }
            dimensionTotals[place].add(tally.count, tally.first_us, tally.last_us)
        }
        lost += other.lost
        delayed += other.delayed
        watched.add(other.watched)
        for (index, sum) in other.sums.enumerated() {
            var sum = sum
            sum.renumber(dimensions: places, signatures: rows)
            let source = Int64(-1 - foreignSources.count)
            foreignSources[source] = (other.connection, sum.totals.maxSource)
            sum.totals.maxSource = source
            let row = other.keys.rows[index]
            let own = try self.index(
                dimension: key.isOfFunctions ? 0 : places[Int(row)],
                signature: rows[row] ?? row, host: other.keys.names[index])
            sums[own].add(sum)
        }
    }
}
