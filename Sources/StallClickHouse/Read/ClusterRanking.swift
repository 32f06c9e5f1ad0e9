// Ranks the groups that lost the most: decided over all groups from a few numbers of each, so that the rest is only
// read of those that are listed. The same rules as in StallArchive/Aggregate/RollUpQuery.swift.

internal import StallModel
internal import StallQuery
internal import StallStore

/// The order of all groups of a question, and their total.
struct ClusterRanking {
    /// The keys of the listed groups' rows, and of those that were joined to them.
    private(set) var listed: [Int64] = []
    private(set) var groupCount = 0
    private(set) var total_ns: Int64 = 0
    /// The part of it that was not the threads' own.
    private(set) var delayed_ns: Int64 = 0
    private(set) var watched = StallTotals()

    private struct Group {
        var keys: [Int64] = []
        var size: Int64 = 0
        var lost_ns: Int64 = 0
        var delayed_ns: Int64 = 0
        var isWhole = false

        mutating func add(_ other: Group, isByLongest: Bool) {
            keys += other.keys
            size = isByLongest ? max(size, other.size) : size.addingSaturated(other.size)
            lost_ns = lost_ns.addingSaturated(other.lost_ns)
            delayed_ns = delayed_ns.addingSaturated(other.delayed_ns)
            isWhole = isWhole || other.isWhole
        }

        var own_ns: Int64 { max(0, lost_ns) - max(0, delayed_ns) }
    }

    init(_ source: CellSource, by key: GroupKey, _ largest: LargestGroups) throws {
        let server = source.server
        let groups = GroupSource(server: server)
        let special = key == .signature ? try groups.special() : [:]
        let name = try Self.names(server, key, special)
        var indexes: [GroupName: Int] = [:]
        var sums: [Group] = []
        for question in Self.questions(source) {
            var rows = try server.rows(question, columnCount: 6)
            while try rows.step() {
                let signature: Int64 = try rows.integer()
                let isWatched = try rows.integer(as: UInt8.self) != 0
                let count: Int64 = try rows.integer()
                let total: Int64 = try rows.integer()
                let longest: Int64 = try rows.integer()
                let delayed: Int64 = try rows.integer()
                total_ns.addSaturated(total)
                delayed_ns.addSaturated(delayed)
                if isWatched {
                    self.watched.count = self.watched.count.addingSaturated(Int(count))
                    self.watched.total += .nanoseconds(total)
                    self.watched.delayed += .nanoseconds(delayed)
                }
                let size =
                    switch largest.order {
                    case .total, .p95: Int64(0)
                    case .rate: isWatched ? total : 0
                    case .count: count
                    case .max: longest
                    }
                let group = Group(
                    keys: [signature], size: size, lost_ns: total, delayed_ns: delayed,
                    isWhole: special[signature]?.isCut != true)
                guard let name = name(signature) else {
                    throw rows.bad(0, "a group that is stored")
                }
                if let index = indexes[name] {
                    sums[index].add(group, isByLongest: largest.order == .max)
                } else {
                    indexes[name] = sums.count
                    sums.append(group)
                }
            }
        }
        let joined = try join(&sums, groups, special, isByLongest: largest.order == .max)
        let shown = sums.indices.filter { !joined.contains($0) }
        groupCount = shown.count
        let wanted = try largest.signatures.map(groups.keys)
        let first = shown.filter { wanted?.isDisjoint(with: sums[$0].keys) != true }.sorted {
            (sums[$0].size, sums[$0].own_ns) > (sums[$1].size, sums[$1].own_ns)
        }
        listed = first.prefix(largest.count).flatMap { Set(sums[$0].keys).sorted() }
    }

    /// Of roll-ups, and of reports where there have to be.
    static func questions(_ source: CellSource) -> [ClickHouseQuery] {
        func question(
            _ table: ClickHouseQuery, _ watched: ClickHouseQuery, _ measures: ClickHouseQuery
        ) -> ClickHouseQuery {
            """
            select signature, \(watched) as watched, \(measures)
            from \(table) and verdict in \(list: source.rankedVerdicts)
            group by signature, watched
            """
        }
        let rolledUp = question(
            source.rolledUp, "is_watched",
            "sum(report_count), \(sum: "total_ns"), max(max_ns), \(sum: "delayed_ns")")
        guard let reports = source.reports else { return [rolledUp] }
        let measures: ClickHouseQuery =
            "count(), \(sum: "duration_ns"), max(duration_ns), \(sum: "delayed_ns")"
        return [rolledUp, question(reports, source.server.isOfWatchedLoop, measures)]
    }

    /// Counts groups whose stacks were all cut in those that they are the beginnings of.
    ///
    /// - Returns: The indexes of the groups that are parts of others now.
    private func join(
        _ sums: inout [Group], _ groups: GroupSource, _ special: [Int64: ReportGroup],
        isByLongest: Bool
    ) throws -> Set<Int> {
        guard sums.contains(where: { !$0.isWhole }) else { return [] }
        let known = try groups.ofCutFamilies()
        var indexes: [Int] = []
        var joinable: [JoinableGroup] = []
        for index in sums.indices {
            guard let group = known[sums[index].keys[0]] else { continue }
            indexes.append(index)
            joinable.append(
                JoinableGroup(
                    signature: group.signature, family: group.family, frames: group.frames,
                    isCut: !sums[index].isWhole, total: .nanoseconds(sums[index].lost_ns)))
        }
        var joined: Set<Int> = []
        for (cut, whole) in joinsOfCutGroups(joinable) {
            sums[indexes[whole]].add(sums[indexes[cut]], isByLongest: isByLongest)
            joined.insert(indexes[cut])
        }
        return joined
    }

    /// The key of a group of rows.
    private enum GroupName: Hashable {
        case number(Int64), text(String)
    }

    private static func names(
        _ server: ClickHouseServer, _ key: GroupKey, _ special: [Int64: ReportGroup]
    ) throws -> (Int64) -> GroupName? {
        switch key {
        case .family:
            var families: [Int64: Int64] = [:]
            var rows = try server.rows("select key, family from signature", columnCount: 2)
            while try rows.step() {
                let key: Int64 = try rows.integer()
                families[key] = try rows.integer()
            }
            return { families[$0].map(GroupName.number) }
        case .function:
            var functions: [Int64: String] = [:]
            var rows = try server.rows(
                "select signature, name from signature_frame where position = 0", columnCount: 2)
            while try rows.step() {
                let signature: Int64 = try rows.integer()
                functions[signature] = try rows.text()
            }
            return { .text(functions[$0] ?? "") }
        default:
            // Rows of one hash are one group. A key of its own never is the hash of another row by chance alone.
            let hashes = special.mapValues(\.signature)
            return { .number(hashes[$0] ?? $0) }
        }
    }
}
