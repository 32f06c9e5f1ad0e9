// Lines of a store's rows, for another store. Each kind is written beside its reader, keys in alphabetical order.

package import StallModel
package import StallQuery

/// Writes the rows of a store as lines.
package struct StoreLines {
    private var text = JSONText()
    private let group: (StallReport) -> ReportGroup

    /// - Parameter group: Decides the groups of reports.
    package init(group: @escaping (StallReport) -> ReportGroup) { self.group = group }

    /// The row as one line with its line end; nothing for one of an unknown kind.
    package mutating func line(_ row: PortableRow) throws -> [UInt8] {
        text.removeAll()
        switch row {
        case .report(let row):
            return try ReportText(row.report, group: group(row.report), origin: row.origin)
                .line(images: row.images)
        case .exposure(let row): try row.write(to: &text)
        case .suppression(let row): try row.write(to: &text)
        case .loss(let row): try row.write(to: &text)
        case .run(let row): try row.write(to: &text)
        case .location(let row): try row.write(to: &text)
        case .watchedLoop(let row): try row.write(to: &text)
        case .unknown: return []
        }
        text.syntax("\n")
        return text.bytes
    }
}
