// One day or hour as JSON: the schema of `trend --json`.

internal import StallModel
import StallQuery

/// One day or hour as JSON: the schema of `trend --json`. Key names are a contract.
package struct TrendRow: Encodable {
    package let schema = "stallctl.trend/1"
    package var begin: String
    package var end: String
    package var title: String
    package var count: Int
    package var totalMs: Double
    package var maxMs: Double
}

extension StallTrend {
    package var rows: [TrendRow] {
        guard let bounds = buckets?.bounds else { return [] }
        return parts.enumerated().map { index, part in
            TrendRow(
                begin: bounds[index].rfc3339, end: bounds[index + 1].rfc3339, title: title,
                count: part.count, totalMs: part.total.milliseconds,
                maxMs: part.longest.milliseconds)
        }
    }
}
