// Under which source an agent writes. Its store may have been copied: with the image of a machine, into a container,
// back from a backup. Two agents that write copies of one store give a number to different reports; so a store notices
// that it is elsewhere, and continues under another source.

internal import Glibc
internal import StallModel

/// Where a store is.
struct StoreLocation: Equatable {
    /// The machine's own identifier; empty where it has none, as in many containers.
    var machine: String
    var bootID: String
    var device: Int64
    var inode: Int64

    init(machine: String, bootID: String, device: Int64, inode: Int64) {
        (self.machine, self.bootID, self.device, self.inode) = (machine, bootID, device, inode)
    }

    init(of path: String) {
        let facts = FileFacts(path)
        self.init(
            machine: ProcessLife.machineID(), bootID: ProcessLife.current().bootID,
            device: Int64(bitPattern: facts?.device ?? 0),
            inode: Int64(bitPattern: facts?.inode ?? 0))
    }

    /// Whether an existing store is the one at this location. Devices are renumbered when a machine starts.
    func isSame(as other: StoreLocation) -> Bool {
        machine == other.machine && inode == other.inode
            && (bootID != other.bootID || device == other.device)
    }
}

/// The sources of an agent's store. Works within the transaction of its caller.
struct StoreIdentity {
    private let find, add, move: Statement

    init(_ connection: Connection) throws {
        find = try connection.prepare(
            "select id, machine, boot_id, device, inode, revision from source order by id desc")
        // Numbers continue from those of the last source: names of locations are numbered across all of them.
        add = try connection.prepare(
            """
            insert into source (store, revision, machine, boot_id, device, inode)
            values (?, (select ifnull(max(revision), 0) from source), ?, ?, ?, ?)
            """)
        move = try connection.prepare(
            "update source set machine = ?, boot_id = ?, device = ?, inode = ? where id = ?")
    }

    func hasAny() throws -> Bool {
        try find.bind()
        defer { find.reset() }
        return try find.step()
    }

    /// The source of the existing store; the last one where none is known to match.
    func own(at place: StoreLocation) throws -> Int64? {
        var last: Int64?
        try find.bind()
        defer { find.reset() }
        while try find.step() {
            let id = try find.integer(at: 0)
            last = last ?? id
            if known(find).map({ $0.isSame(as: place) }) == true { return id }
        }
        return last
    }

    /// Notes where the store is: under the source that it had there, or a new one.
    func settle(_ place: StoreLocation) throws {
        var (same, unplaced): (Int64?, Int64?)
        try find.bind()
        while try find.step() {
            let (id, revision) = try (find.integer(at: 0), find.integer(at: 5))
            guard (0...ValueLimits.revision).contains(revision) else {
                throw find.damage("its revision is \(revision)")
            }
            if let known = known(find) {
                if known.isSame(as: place), same == nil { same = id }
            } else {
                unplaced = id
            }
        }
        // An older store has no location: it is assumed to be where it was.
        if let id = same ?? unplaced {
            return try move.run(place.machine, place.bootID, place.device, place.inode, id)
        }
        try add.run(
            UniqueID(version7At: .now()), place.machine, place.bootID,
            place.device,
            place.inode)
    }

    private func known(_ row: Statement) -> StoreLocation? {
        guard let machine = row.optionalText(at: 1), let device = row.optionalInteger(at: 3),
            let inode = row.optionalInteger(at: 4)
        else { return nil }
        return StoreLocation(
            machine: machine, bootID: row.text(at: 2), device: device, inode: inode)
    }
}
