// Names that an agent had no time for are looked up before its store is read, and after it was imported: the group of a
// report depends on them.

internal import StallAnalysis
internal import StallArchive
internal import StallIngest
internal import StallModel
internal import StallQuery
internal import StallSymbolFiles

enum UnfinishedNames {
    /// Opens a store for reading, after the names in it are complete, as far as the programs are on this machine. Those
    /// of a central store were looked up by `ingest`.
    static func open(path: String) throws -> ReportStore {
        let store = try ReportStore.open(path: path)
        if store.role == .agent {
            try complete(store, grouper: DefaultGrouper(rules: .builtIn))
        }
        return store
    }

    /// Completes the names of a store, as far as the programs are on this machine.
    ///
    /// - Parameter grouper: Of a central store's reports.
    static func complete(path: String, grouper: any ReportGrouper) throws {
        try complete(try ReportStore.open(path: path), grouper: grouper)
    }

    private static func complete(_ store: ReportStore, grouper: any ReportGrouper) throws {
        let locations = try store.unfinishedLocations()
        guard !locations.isEmpty else { return }
        let symbols = Symbolication(
            of: locations, files: [], debugDirectories: [], decompressor: decompressSection)
        let frames = symbols.frames(for: locations).filter { $0.value.last?.function != nil }
        do {
            let names = try LocationStore(path: store.path, grouper: grouper)
            _ = try names.rename(frames)
            try names.close()
        } catch {
            // The store may be another user's; then it is read as it is.
        }
        let rest = try store.unfinishedLocations().count
        if rest > 0 {
            say(
                "stallctl: the inlined calls at \(counted(rest, "location")) are not known yet, and groups may change: "
                    + "stallctl symbolicate")
        }
    }
}
