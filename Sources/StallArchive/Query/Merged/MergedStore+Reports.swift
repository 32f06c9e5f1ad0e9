// Single reports of several stores. Each store has numbers of its own for stacks; here a stack's number also contains
// the store that it is of.

package import StallModel
package import StallQuery
internal import StallStore

extension MergedStore {
    private func merged(_ stack: Int64, of part: Int) throws -> Int64 {
        let (product, overflow) = stack.multipliedReportingOverflow(by: Int64(parts.count))
        let (number, isTooLarge) = product.addingReportingOverflow(Int64(part))
        guard !overflow, !isTooLarge else { throw MergedStoreError.needsOneStore }
        return number
    }

    /// One answer of the stores' own.
    private func merge(
        _ selection: (ReportStore) throws -> ReportSelection
    ) throws -> ReportSelection {
        var sum = ReportSelection(runs: [], reports: [])
        for (number, part) in parts.enumerated() {
            let selection = try selection(part)
            for var report in selection.reports {
                report.run += sum.runs.count
                for index in report.stacks.indices {
                    report.stacks[index].stack = try merged(
                        report.stacks[index].stack, of: number)
                }
                sum.reports.append(report)
            }
            sum.runs += selection.runs
        }
        return sum
    }

    package func summaries(
        _ filter: ReportFilter, ofGroups signatures: Set<Int64>?
    ) throws -> ReportSelection {
        try merge { try $0.summaries(filter, ofGroups: signatures) }
    }

    package func newest(
        _ filter: ReportFilter, signature: Int64?, count: Int
    ) throws -> ReportSelection {
        var selection = try merge { try $0.newest(filter, signature: signature, count: count) }
        selection.reports.sort {
            ($0.start, $0.id.description) > ($1.start, $1.id.description)
        }
        selection.reports = Array(selection.reports.prefix(count))
        return selection
    }

    package func frames(ofStacks stacks: Set<Int64>) throws -> [Int64: [Frame]] {
        let count = Int64(parts.count)
        var own = Array(repeating: Set<Int64>(), count: parts.count)
        for stack in stacks {
            let part = (stack % count + count) % count
            own[Int(part)].insert((stack - part) / count)
        }
        var frames: [Int64: [Frame]] = [:]
        for (number, part) in parts.enumerated() {
            for (stack, found) in try part.frames(ofStacks: own[number]) {
                frames[try merged(stack, of: number)] = found
            }
        }
        return frames
    }

    package func reports(idPrefix: String) throws -> [StallReport] {
        var found: [StallReport] = []
        for part in parts {
            do throws(StoreError) { found += try part.reports(idPrefix: idPrefix) } catch {
                guard case .unknownReport = error else { throw error }
            }
        }
        let ids = Set(found.map(\.id)).sorted { $0.description < $1.description }
        guard !ids.isEmpty else { throw StoreError.unknownReport(prefix: idPrefix) }
        guard ids.count == 1 else {
            throw StoreError.ambiguousReport(prefix: idPrefix, ids: ids)
        }
        return found
    }

    package func images(ofRun run: UniqueID) throws -> [Image] {
        for part in parts {
            let images = try part.images(ofRun: run)
            if !images.isEmpty { return images }
        }
        return []
    }
}

// Questions that read all stacks of all reports.
extension MergedStore {
    package func stackSets(_ filter: ReportFilter) throws -> StackSets {
        throw MergedStoreError.needsOneStore
    }
    package func stallTable(_ filter: ReportFilter, expected: Int) throws -> StallTable {
        throw MergedStoreError.needsOneStore
    }
    package func functions(
        ofStacks stacks: [Int64], _ number: (Frame) -> Int32
    ) throws -> StackFunctions {
        throw MergedStoreError.needsOneStore
    }
    package func reportID(source: Int64, seq: Int64) throws -> UniqueID? {
        throw MergedStoreError.needsOneStore
    }
    package func forEachReport(
        _ filter: ReportFilter, in order: CursorOrder, limit: Int?,
        _ body: (StallReport, ReportOrigin, any StoreLookup) throws -> Void
    ) throws {
        throw MergedStoreError.needsOneStore
    }
    package func forEachOutline(
        _ filter: ReportFilter, limit: Int?, withThreads: Bool,
        _ body: (ReportOutline, any OutlineLookup) throws -> Void
    ) throws {
        throw MergedStoreError.needsOneStore
    }
    package func stackTimes(_ filter: ReportFilter) throws -> [StackTime] {
        throw MergedStoreError.needsOneStore
    }
    package func forEachStall(
        _ filter: ReportFilter, in order: CursorOrder, limit: Int?,
        _ body: (StallTrace, any StoreLookup) throws -> Void
    ) throws {
        throw MergedStoreError.needsOneStore
    }
}
