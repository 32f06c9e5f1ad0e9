// The stalls of a ranking's groups by process run. Roll-ups do not have runs: the store gives its reports by
// run and stored group, and these groups lead to the ranking's.

internal import StallModel
internal import StallQuery

extension RankingQuestion {
    /// Adds the stalls of some groups by run, and of the others together, to a ranking from roll-ups, or why that is
    /// impossible.
    func addRuns(to ranking: inout Ranking, of groups: Set<Int64>) throws {
        // A store of other reports than its roll-ups count would compare a part with the whole.
        guard try !lacksReports else {
            ranking.runs = .unknown(reason: "reports were pruned")
            return
        }
        let rest = ranking.groups.count
        var places: [Int64: Int] = [:]
        for (place, group) in ranking.groups.enumerated() {
            let signature = group.group.signature
            places[signature] = groups.contains(signature) ? place : rest
        }
        var stored = try storedGroups(places, rest: rest)
        var sums = RunSums()
        var runs: [ProcessRun] = []
        var ranks: (loops: [Int?], runs: [Int?]) = ([], [])
        let isKnown = try store.runStalls(filter) { table in
            sums.begin(runs.count, table.runs.count)
            runs += table.runs
            ranks = ([], [])
            // When a run without watched time was there is not known.
            if filter.since == nil, filter.until == nil {
                let allowed = table.runs.map(filter.allows)
                for loop in table.loops
                where allowed[loop.run] && filter.allows(loop: table.names[loop.name]) {
                    sums.see(loop.run)
                }
            }
            switch key {
            case .loop:
                ranks.loops = table.names.map { places[ReportGroup(fact: $0, of: key).signature] }
            case .version, .host, .app, .os, .device:
                ranks.runs = table.runs.map { run in
                    let fact: String? =
                        switch key {
                        case .version: "\(run.app) \(run.version)"
                        case .host: run.host
                        case .os: run.os
                        case .device: run.device
                        default: run.app
                        }
                    return places[ReportGroup(fact: fact, of: key).signature]
                }
            default: break
            }
        } _: { stall in
            let place =
                switch key {
                case .cause: places[ReportGroup(fact: stall.cause?.word, of: key).signature]
                case .loop: ranks.loops[stall.loop]
                case .version, .host, .app, .os, .device: ranks.runs[stall.run]
                case .signature, .family, .function, .inclusive: stored.places[stall.signature]
                }
            if let place { sums.add(stall, place: place) }
            if !stored.cut.isEmpty {
                stored.totals[stall.signature, default: .zero] += stall.duration
            }
        }
        guard isKnown else {
            ranking.runs = .unknown(reason: "the store does not add up stalls by host")
            return
        }
        let joined = stored.joined(places)
        for (place, totals) in sums.all(runs) {
            guard let place = place > rest ? joined[place - rest - 1] : place else { continue }
            if place < rest {
                ranking.groups[place].runs.append(totals)
            } else {
                ranking.restRuns.append(totals)
            }
        }
        let seen = zip(runs, sums.isSeen).filter(\.1).map(\.0)
        ranking.runs = .known(try comparedRuns(seen))
    }

    /// The ranking's groups that the stalls of stored groups count in.
    private func storedGroups(_ places: [Int64: Int], rest: Int) throws -> StoredGroups {
        switch key {
        case .signature, .family, .function: break
        case .inclusive, .cause, .loop, .version, .host, .app, .os, .device: return StoredGroups()
        }
        var stored = StoredGroups()
        for group in try store.groups() {
            // Of those with one hash, one of whole stacks.
            if let known = stored.groups[group.signature], !known.isCut || group.isCut { continue }
            stored.groups[group.signature] = group
        }
        guard key == .signature else {
            stored.places = stored.groups.compactMapValues { places[$0.grouped(by: key).signature] }
            return stored
        }
        stored.places = places
        stored.cut = stored.groups.values.filter(\.isCut).map(\.signature).sorted()
        for (number, signature) in stored.cut.enumerated() {
            stored.places[signature] = rest + 1 + number
        }
        return stored
    }

    /// Process runs with their watched time, and those that have only that: a host without a stall is an observation.
    /// In unspecified order.
    private func comparedRuns(_ seen: [ProcessRun]) throws -> [ComparedRun] {
        var runs: [UniqueID: ComparedRun] = [:]
        func note(_ run: ProcessRun) {
            if runs[run.id] == nil { runs[run.id] = ComparedRun(run: run.id, host: run.host) }
        }
        seen.forEach(note)
        for loop in try store.watchedLoops(filter, withLengths: false) where loop.watched > .zero {
            note(loop.run)
            runs[loop.run.id]!.watched = (runs[loop.run.id]!.watched ?? .zero) + loop.watched
        }
        return Array(runs.values)
    }

    /// The process runs that the filter selects, among them those of these stalls.
    func comparedRuns(ofStalls runs: [ProcessRun]) throws -> [ComparedRun] {
        guard filter.since == nil, filter.until == nil else { return try comparedRuns(runs) }
        let all = try store.loops().filter { filter.allows($0.run) && filter.allows(loop: $0.name) }
        return try comparedRuns(runs + all.map(\.run))
    }
}

/// The groups of a store, and where their stalls count.
private struct StoredGroups {
    var groups: [Int64: ReportGroup] = [:]
    var places: [Int64: Int] = [:]
    /// Groups of cut stacks, which have indices of their own until all stalls are known.
    var cut: [Int64] = []
    /// Filled if there are cut stacks.
    var totals: [Int64: Duration] = [:]

    /// The indices of the groups of cut stacks. As in roll-ups, they count in those that they are the beginnings of.
    func joined(_ places: [Int64: Int]) -> [Int?] {
        guard !cut.isEmpty else { return [] }
        let present = totals.keys.sorted().compactMap { groups[$0] }
        let joins = joinsOfCutGroups(
            present.map { group in
                JoinableGroup(
                    signature: group.signature, family: group.family, frames: group.frames,
                    isCut: group.isCut, total: totals[group.signature] ?? .zero)
            })
        var wholes: [Int64: Int64] = [:]
        for (cut, whole) in joins { wholes[present[cut].signature] = present[whole].signature }
        return cut.map { places[wholes[$0] ?? $0] }
    }
}

/// Stalls by group and process run.
private struct RunSums {
    private struct Place: Hashable {
        var group: Int
        var run: Int
    }

    private var numbers: [Place: Int] = [:]
    private var sums: [(place: Place, totals: StallTotals, watched: StallTotals)] = []
    private var firstRun = 0
    private(set) var isSeen: [Bool] = []

    /// The runs of the next stalls are counted from here on.
    mutating func begin(_ firstRun: Int, _ count: Int) {
        self.firstRun = firstRun
        isSeen += Array(repeating: false, count: count)
    }

    /// Notes a run of the filter.
    mutating func see(_ run: Int) { isSeen[firstRun + run] = true }

    mutating func add(_ stall: RunStall, place group: Int) {
        let place = Place(group: group, run: firstRun + stall.run)
        isSeen[place.run] = true
        let number: Int
        if let known = numbers[place] {
            number = known
        } else {
            number = sums.count
            numbers[place] = number
            sums.append((place, StallTotals(), StallTotals()))
        }
        sums[number].totals.add(stall.duration)
        if stall.isWatched { sums[number].watched.add(stall.duration) }
    }

    func all(_ runs: [ProcessRun]) -> [(group: Int, totals: RunTotals)] {
        sums.map { sum in
            var totals = RunTotals(run: runs[sum.place.run].id)
            (totals.totals, totals.watched) = (sum.totals, sum.watched)
            return (sum.place.group, totals)
        }
    }
}

extension ReportFilter {
    fileprivate func allows(_ run: ProcessRun) -> Bool {
        (apps.isEmpty || apps.contains(run.app))
            && (versions.isEmpty || versions.contains(run.version))
            && (hosts.isEmpty || hosts.contains(run.host))
    }

    fileprivate func allows(loop: String) -> Bool { loops.isEmpty || loops.contains(loop) }
}
