// The reports of a listing, and their order. The store returns the newest reports of a filter directly; those of
// a group under a key are read from the days that the group's stalls began on (ListingQuestion+Group.swift); other queries
// read every report that the filter selects and whose stored group may be meant.

package import StallModel
package import StallQuery

/// A query for a listing.
package struct ListingQuestion {
    package enum Order: String, CaseIterable, Sendable {
        /// Newest first.
        case began
        /// Longest first.
        case lasted
    }

    package var ranking: RankingQuestion
    /// A group's name; nil for all.
    package var group: String?
    /// A group under a key, by its hash: only its stalls are listed. Nil for all.
    package var exactGroup: (key: GroupKey, signature: Int64)?
    /// Empty for all.
    package var states: Set<StallState> = []
    package var minDuration = Duration.zero
    package var order = Order.began
    package var limit: Int

    /// - Parameter ranking: The store, the filter and the rules.
    package init(_ ranking: RankingQuestion, limit: Int) {
        self.ranking = ranking
        self.limit = limit
    }
}

extension ListingQuestion {
    /// - Throws: ``UnclearGroup`` if no group matches the name.
    package func listing() throws -> Listing {
        try ranking.store.consistently { try chosenListing() }
    }

    private func chosenListing() throws -> Listing {
        let (store, filter) = (ranking.store, ranking.filter)
        if group == nil, states.isEmpty, minDuration <= .zero, order == .began {
            guard let exactGroup else {
                return try Listing(store: store, filter: filter, rules: ranking.rules, limit: limit)
            }
            if let newest = try newest(of: exactGroup) { return newest }
        }
        let stored = try storedGroups()
        let selection = try store.summaries(filter, ofGroups: stored)
        var reports = selection.reports.filter {
            $0.duration >= minDuration && (states.isEmpty || states.contains($0.state))
        }
        if let group { try select(&reports, of: group, stored, selection.runs) }
        if let exactGroup { try select(&reports, of: exactGroup, selection.runs) }
        let count = reports.count
        // Numbers are sorted in a fraction of the time that reports take.
        func key(_ report: ReportSummary) -> Int64 {
            order == .lasted ? report.duration.nanoseconds : report.start.microseconds
        }
        if limit > 0, limit < count {
            let least = reports.map(key).sorted(by: >)[limit - 1]
            reports.removeAll { key($0) < least }
        }
        reports.sort { left, right in
            if order == .lasted, left.duration != right.duration {
                return left.duration > right.duration
            }
            if left.start != right.start { return left.start > right.start }
            return left.id.description > right.id.description
        }
        var listing = try Listing(
            showing: reports.prefix(limit), of: selection, reportCount: count,
            store: store, rules: ranking.rules)
        listing.order = order
        return listing
    }

    /// The stored groups that may be meant, by hash; nil if all may, or other rules than these decided them.
    private func storedGroups() throws -> Set<Int64>? {
        guard let group, try ranking.store.rulesHash() == ranking.rules.hash else { return nil }
        let causes = [nil] + CauseClass.allCases
        let meant = try ranking.store.groups().filter { stored in
            causes.contains { stored.isMeant(by: group, cause: $0) }
        }
        return Set(meant.map(\.signature))
    }

    func select(
        _ reports: inout [ReportSummary], of group: (key: GroupKey, signature: Int64),
        _ runs: [ProcessRun]
    ) throws {
        let ranked = ranking.filter.rankedVerdicts
        reports.removeAll { !ranked.contains($0.verdict) }
        let frames = try ranking.store.frames(
            ofStacks: Set(reports.flatMap { $0.stacks.map(\.stack) }))
        var cache = SignatureCache(frames: frames, rules: ranking.rules)
        reports = reports.filter { report in
            let run = runs[report.run]
            guard group.key != .inclusive else {
                return cache.functions(of: report, in: run).contains {
                    $0.group.signature == group.signature
                }
            }
            return group.key.group(of: report, in: run) { cache.group(of: report, in: run) }
                .signature == group.signature
        }
    }

    private func select(
        _ reports: inout [ReportSummary], of name: String, _ stored: Set<Int64>?,
        _ runs: [ProcessRun]
    ) throws {
        let frames = try ranking.store.frames(
            ofStacks: Set(reports.flatMap { $0.stacks.map(\.stack) }))
        var cache = SignatureCache(frames: frames, rules: ranking.rules)
        reports = reports.filter {
            cache.group(of: $0, in: runs[$0.run]).isMeant(by: name, cause: $0.cause)
        }
        guard reports.isEmpty, stored?.isEmpty ?? true else { return }
        let known = try ranking.ranking(by: .total, limit: 1000).groups
        guard !known.isEmpty else { return }
        // The group exists, though none of its reports may match the states and durations.
        guard !known.contains(where: { $0.isMeant(by: name) }) else { return }
        throw UnclearGroup(path: ranking.store.path, name: name, found: [], known: known)
    }
}
