// Names the locations of a finished store again, from symbols that were not at hand when it was written. Only locations
// in images with a build ID: the file of others is not known.

internal import StallArchive
package import StallModel
package import StallQuery
package import StallStore

/// The locations of a store of either role, for callers with better names for them.
///
/// **Thread safety:** one thread at a time. Agents may continue to write the store.
package final class LocationStore {
    private let file: StoreFile
    private let grouper: any ReportGrouper

    /// Opens an existing store; one of an older schema is migrated.
    ///
    /// - Parameter grouper: Decides again which groups the reports of a central store belong to, since names make groups.
    package init(path: String, grouper: any ReportGrouper) throws(StoreError) {
        self.grouper = grouper
        let role = try StoreFile.openForReading(path: path, wait: .seconds(5)).role
        file = try StoreFile.openForWriting(
            path: path, role: role, followsLinks: true, wait: .seconds(60))
    }

    /// The locations that the selected reports name, each once, and how many more are in images without a build ID.
    package func places(
        _ filter: ReportFilter
    ) throws(StoreError) -> (places: [StoredLocation], withoutBuildID: Int) {
        try transaction { connection in
            let reader = try StackReader(connection)
            var places: [StoredLocation] = []
            var withoutBuildID = 0
            for number in try locations(filter, connection) {
                let place = try reader.place(number)
                if place.location.buildID == nil {
                    withoutBuildID += 1
                } else {
                    places.append(StoredLocation(location: place.location, frames: place.frames))
                }
            }
            return (places, withoutBuildID)
        }
    }

    /// Attaches names to locations where they differ from the known ones and are no less detailed.
    ///
    /// A changed location of an agent's store counts as new, so that the next `ingest` imports its names.
    ///
    /// - Returns: The locations that have new names now.
    package func rename(
        _ frames: [CodeLocation: [Frame]]
    ) throws(StoreError) -> Set<CodeLocation> {
        try transaction { connection in
            let (interner, reader) = (try Interner(connection), try StackReader(connection))
            let grouping = file.role == .central ? try Grouping(connection, grouper) : nil
            try grouping?.bringUpToDate()
            var changed: Set<CodeLocation> = []
            var revision: Int64?
            for (location, frames) in frames {
                guard let buildID = location.buildID else { continue }
                let image = ContentHash.image(
                    path: location.imagePath, buildID: buildID.bytes, run: nil)
                let hash = ContentHash.location(
                    image: image, offset: Int64(bitPattern: location.offset),
                    kind: Int64(location.kind.rawValue))
                guard let known = try interner.knownLocation(hash: hash) else { continue }
                let names = frames.map(FrameNames.init)
                let old = try reader.place(known.id).frames.map(FrameNames.init)
                let detail = max(known.detail, FrameNames.detail(old))
                guard FrameNames.detail(names) >= detail, known.detail == 0 || names != old
                else { continue }
                if revision == nil { revision = try nextRevision(connection) }
                try interner.name(
                    location: Interned(id: known.id, hash: hash), names, revision: revision!,
                    namer: Interner.symbolicated)
                grouping?.noteNames(ofLocation: known.id, wasLookedUp: known.detail > 0)
                changed.insert(location)
            }
            try grouping?.flush()
            return changed
        }
    }

    /// Closes the store; when no other process uses it, one portable file remains.
    package func close() throws(StoreError) { try file.close() }

    /// The numbers of the locations that the selected reports name.
    private func locations(_ filter: ReportFilter, _ connection: Connection) throws -> [Int64] {
        if filter == ReportFilter() {
            let rows = try connection.prepare("select id from location order by id")
            var all: [Int64] = []
            while try rows.step() { all.append(try rows.integer()) }
            return all
        }
        let condition = Condition(filter)
        let rows = try connection.prepare(
            "select samples, threads from report where \(condition.sql)")
        try condition.bind(to: rows)
        var stacks: Set<Int64> = []
        while try rows.step() {
            stacks.formUnion(try rows.samples().compactMap(\.stack))
            stacks.formUnion(try rows.threads().compactMap(\.stack))
        }
        let findStack = try connection.prepare("select locations from stack where id = ?")
        var locations: Set<Int64> = []
        for stack in stacks {
            try findStack.bind(stack)
            guard try findStack.step(), let entries = [StackEntry](encoded: findStack.blob())
            else { throw findStack.damage("stack \(stack) is not a list of locations") }
            locations.formUnion(entries.map(\.location))
            findStack.reset()
        }
        return locations.sorted()
    }

    /// The number that changed locations get. In a central store they have none: `ingest` compares the names.
    private func nextRevision(_ connection: Connection) throws -> Int64 {
        guard file.role == .agent else { return 0 }
        let next = try connection.prepare(
            "update source set revision = revision + 1 where id = (select max(id) from source) returning revision"
        )
        guard let revision = try next.found() else {
            throw next.damage("the store's identity is missing")
        }
        return revision
    }

    private func transaction<Answer>(
        _ body: (Connection) throws -> Answer
    ) throws(StoreError) -> Answer {
        try file.connection.transaction(.immediate) { try body(file.connection) }
    }
}
