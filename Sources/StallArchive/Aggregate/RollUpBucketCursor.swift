// Steps through the roll-ups of a central store.

internal import StallModel
internal import StallStore

/// Buckets that are as long as each other, of some days in a row.
struct RollUpBucketSpan {
    var dayCount: Int64
    var days: Range<Int64>
}

/// Steps through the buckets of a span that a filter selects. They come by day, and within a day by dimension row.
struct RollUpBucketCursor {
    /// The current bucket: its dimension row, signature and first day, and from 3 on the columns that were asked for.
    let row: Statement
    private let dimensions: KnownDimensions
    private var dimensionRow: Int64?
    private var dimension: Int?

    /// - Parameters:
    ///   - table: By hosts, these replace signatures.
    ///   - signatures: Buckets of others may be left out.
    init(
        _ connection: Connection, _ columns: String, _ span: RollUpBucketSpan,
        _ dimensions: KnownDimensions, of table: RollUpTable = .groups,
        signatures: [Int64]? = nil
    ) throws {
        row = try connection.prepare(
            """
            select cohort, \(table.key), first_day, \(columns) from \(table.name)
            where day_count = ? and first_day >= ? and first_day < ?
                and \(Connection.narrowing("cohort", to: dimensions.selectedRows))
                and \(Connection.narrowing(table.key, to: signatures))
            """)
        self.dimensions = dimensions
        try row.bind(span.dayCount, span.days.lowerBound, span.days.upperBound)
    }

    /// Goes to the next bucket.
    ///
    /// - Returns: The index of its dimension row.
    mutating func next() throws -> Int? {
        while try row.step() {
            let number = try row.integer(at: 0)
            if number != dimensionRow {
                (dimensionRow, dimension) = (number, dimensions.index(ofRow: number))
            }
            if let dimension { return dimension }
        }
        return nil
    }
}

extension Connection {
    /// A condition that leaves out rows whose column is none of these numbers, where those are few: a statement's
    /// length is limited, and to leave rows out is only to save time.
    static func narrowing(_ column: String, to numbers: [Int64]?) -> String {
        guard let numbers, numbers.count <= 1000 else { return "true" }
        return "\(column) in (\(numbers.map(String.init).joined(separator: ", ")))"
    }
}
