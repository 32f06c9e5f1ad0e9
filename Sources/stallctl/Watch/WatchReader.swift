// Reads what `top --watch` shows. The file is looked at before each reading: a store may be deleted, or be replaced by
// another one, while it is watched.

internal import Glibc
internal import StallAnalysis
internal import StallModel
internal import StallQuery

/// The identity of the file that a path leads to.
struct FileIdentity: Equatable {
    var device: UInt64
    var inode: UInt64

    /// Nil if there is no file.
    init?(path: String) {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        device = UInt64(status.st_dev)
        inode = UInt64(status.st_ino)
    }
}

/// A store that is watched for as long as the user looks.
struct WatchReader {
    let path: String
    let filter: ReportFilter
    let grouping: GroupingOptions
    /// Groups and reports beyond this number are not listed.
    let limit: Int
    let frameCount: Int

    private var store: any QueryableStore
    private var question: RankingQuestion
    private var file: FileIdentity?
    /// The state of the store, and since when.
    private(set) var notice: String?

    init(
        _ store: any QueryableStore, _ filter: ReportFilter, _ grouping: GroupingOptions,
        limit: Int, frameCount: Int
    ) throws {
        path = store.path
        self.filter = filter
        self.grouping = grouping
        self.limit = limit
        self.frameCount = frameCount
        self.store = store
        file = FileIdentity(path: store.path)
        question = try grouping.question(to: store, filter)
        // A message would be written over the screen.
        question.noteOtherRules = {}
    }

    /// Reads a page.
    ///
    /// - Returns: Nil if the store is gone: the last reading is still the best there is.
    mutating func content(
        of state: WatchState, on terminal: Terminal, clock: String
    ) throws -> WatchContent? {
        // A cluster is queried again each time; a file may be another one by now.
        if StoreOpener.isAddress(path) { return try page(of: state, on: terminal) }
        guard let now = FileIdentity(path: path) else {
            if file != nil { notice = "the store was deleted before \(clock)" }
            file = nil
            return nil
        }
        if now != file {
            store = try StoreOptions.open(path: path)
            question = try grouping.question(to: store, filter)
            question.noteOtherRules = {}
            file = now
            notice = "the store was replaced before \(clock)"
        }
        return try page(of: state, on: terminal)
    }

    private mutating func page(
        of state: WatchState, on terminal: Terminal
    ) throws -> WatchContent? {
        switch state.page {
        case .groups: return try groups(state, terminal)
        case .reports(let group): return try reports(of: group, terminal)
        case .report(let id): return try report(id, terminal)
        }
    }

    private mutating func groups(
        _ state: WatchState, _ terminal: Terminal
    ) throws -> WatchContent {
        question.key = state.group
        let ranking = try question.ranking(by: state.order, limit: limit)
        let view = TopView(
            ranking: ranking, limit: limit, frameCount: frameCount,
            terminal: terminal.inside(margin: 2), isLive: true)
        guard !ranking.groups.isEmpty else { return WatchContent(header: view.lines) }
        let table = view.table.lines(for: view.terminal)
        return WatchContent(
            header: view.header.wrapped(to: terminal.columns) + ["", "  " + table[0]],
            rows: Array(table.dropFirst()),
            targets: ranking.groups.prefix(limit).map { group in
                .reports(
                    WatchedGroup(
                        key: state.group, signature: group.group.signature, title: group.title))
            },
            footer: view.notes.flatMap { $0.wrapped(to: terminal.columns) })
    }

    private func reports(
        of group: WatchedGroup, _ terminal: Terminal
    ) throws -> WatchContent {
        var listing = ListingQuestion(question, limit: limit)
        listing.exactGroup = (group.key, group.signature)
        let answer = try listing.listing()
        let view = ListView(listing: answer, terminal: terminal.inside(margin: 2))
        let title = [group.title.printable, ""]
        guard !answer.entries.isEmpty else { return WatchContent(header: title + view.lines) }
        let lines = view.lines
        return WatchContent(
            header: title.dropLast() + ["", "  " + lines[0]],
            rows: Array(lines.dropFirst().prefix(answer.entries.count)),
            targets: answer.entries.map { .report($0.report.id.description) },
            footer: Array(lines.dropFirst(answer.entries.count + 1)))
    }

    private func report(_ id: String, _ terminal: Terminal) throws -> WatchContent {
        let reports = try store.reports(idPrefix: id)
        var lines: [String] = []
        for (index, report) in reports.enumerated() {
            if index > 0 { lines.append("") }
            lines +=
                ReportView(
                    report: report, stackLimit: .max, rules: question.rules, terminal: terminal
                ).lines
        }
        return WatchContent(rows: lines)
    }
}

extension Terminal {
    /// This terminal without some columns at its left.
    fileprivate func inside(margin: Int) -> Terminal {
        var terminal = self
        terminal.columns = columns.map { max(1, $0 - margin) }
        return terminal
    }
}
