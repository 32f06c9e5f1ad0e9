// Groups as rows.

internal import StallQuery
internal import StallStore

/// Adds rows to `signature` and `signature_frame`. Works within the transaction of its caller.
struct SignatureWriter {
    private let find, add, addFrame: Statement

    init(_ connection: Connection) throws {
        find = try connection.prepare("select id from signature where hash = ? and title = ?")
        add = try connection.prepare(
            """
            insert into signature (hash, family, title, is_cut, wait, has_app_frame, is_variant)
            select ?1, ?2, ?3, ?4, ?5, ?6, exists (select 1 from signature where hash = ?1)
            """)
        addFrame = try connection.prepare(
            "insert into signature_frame (signature, position, name) values (?, ?, ?)")
    }

    /// The row of a group, which is added when it is missing.
    func row(of group: ReportGroup) throws -> Int64 {
        if let id = try find.found(group.signature, group.title) { return id }
        let id = try add.insert(
            group.signature, group.family, group.title, group.isCut, group.wait?.rawValue,
            !group.isWithoutAppFrame)
        for (position, name) in group.frames.enumerated() {
            try addFrame.run(id, Int64(position), name)
        }
        return id
    }
}
