// Groups as rows.

internal import StallModel

/// The rows of `signature` and `signature_frame`. Works within the transaction of its caller.
struct SignatureRows {
    private let connection: Connection
    private let find, add, addFrame: Statement

    init(_ connection: Connection) throws {
        self.connection = connection
        find = try connection.prepare("select id from signature where hash = ?")
        add = try connection.prepare(
            "insert into signature (hash, family, title) values (?, ?, ?)")
        addFrame = try connection.prepare(
            "insert into signature_frame (signature, position, name) values (?, ?, ?)")
    }

    /// The row of a group, which is added when it is missing.
    func row(of group: ReportGroup) throws -> Int64 {
        if let id = try find.integer(group.signature) { return id }
        let id = try add.insert(group.signature, group.family, group.title)
        for (position, name) in group.frames.enumerated() {
            try addFrame.run(id, Int64(position), name)
        }
        return id
    }

    /// Groups by the numbers of their rows: at least these, or all.
    static func groups(
        _ connection: Connection, _ ids: [Int64]? = nil
    ) throws -> [Int64: ReportGroup] {
        var groups: [Int64: ReportGroup] = [:]
        let rows = try connection.prepare(
            "select id, hash, family, title from signature where "
                + Connection.narrowing("id", to: ids))
        while try rows.step() {
            groups[rows.integer(at: 0)] = ReportGroup(
                signature: rows.integer(at: 1), family: rows.integer(at: 2),
                title: rows.text(at: 3), frames: [])
        }
        let frames = try connection.prepare(
            "select signature, name from signature_frame where "
                + Connection.narrowing("signature", to: ids) + " order by signature, position")
        while try frames.step() {
            groups[frames.integer(at: 0)]?.frames.append(frames.text(at: 1))
        }
        return groups
    }
}
