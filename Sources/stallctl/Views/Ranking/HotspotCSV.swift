// The columns of `top --csv`. Their names are a contract.

internal import StallAnalysis
internal import StallFormats

enum HotspotCSV {
    static let header = [
        "rank", "signature", "family", "title", "wait", "count", "total_ms", "share", "p50_ms",
        "p95_ms", "max_ms",
        "frames", "apps", "versions", "first_seen", "last_seen", "example", "p99_ms",
        "cause", "rate_ms_per_hour", "watched_count", "watched_total_ms", "own_ms",
    ]

    static func fields(_ row: HotspotRow) -> [CSVWriter.Field] {
        [
            .plain("\(row.rank)"), .plain(row.signature), .plain(row.family), .text(row.title),
            .plain(row.wait ?? ""), .plain("\(row.count)"),
            .plain("\(row.totalMs)"), .plain("\(row.share)"), .plain("\(row.p50Ms)"),
            .plain("\(row.p95Ms)"), .plain("\(row.maxMs)"),
            .text(row.frames.joined(separator: " <- ")),
            .text(row.apps.joined(separator: " ")), .text(row.versions.joined(separator: " ")),
            .plain(row.firstSeen), .plain(row.lastSeen), .plain(row.example ?? ""),
            .plain("\(row.p99Ms)"),
            .plain(row.cause ?? ""), .plain(row.rateMsPerHour.map { "\($0)" } ?? ""),
            .plain("\(row.watchedCount)"), .plain("\(row.watchedTotalMs)"),
            .plain("\(row.ownMs)"),
        ]
    }
}
