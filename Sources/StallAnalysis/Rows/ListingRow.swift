// One report in a list as JSON: the schema of `list --json`.

internal import StallModel
package import StallQuery

/// One report in a list, as JSON: the schema of `list --json`. Key names are a contract.
package struct ListingRow: Encodable {
    package let schema = "stallctl.listing/1"
    package var id: String
    package var start: String
    package var durationMs: Double
    package var state: String
    /// The event that ended it; null while it is open, and if unknown.
    @Nullable package var ending: String?
    package var verdict: String
    package var app: String
    package var version: String
    package var host: String
    package var pid: Int32
    package var loop: String
    package var signature: String
    package var title: String
    package var frames: [String]
    @Nullable package var wait: String?
    /// Null if no cause was determined.
    @Nullable package var cause: String?
    /// Null if unknown, as `device`.
    @Nullable package var os: String?
    @Nullable package var device: String?

    package init(_ entry: Listing.Entry) {
        id = entry.report.id.description
        start = entry.report.start.rfc3339
        durationMs = entry.report.duration.milliseconds
        state = entry.report.state.word
        ending = entry.report.outcome.ending?.word
        verdict = entry.report.verdict.word
        app = entry.run.app
        version = entry.run.version
        host = entry.run.host
        pid = entry.run.pid
        loop = entry.report.loop
        signature = hexadecimal(entry.signature.hash)
        title = entry.signature.group.title(under: entry.report.cause)
        frames = entry.signature.keyFrames
        wait = entry.signature.wait?.rawValue
        cause = entry.report.cause?.word
        os = entry.run.os
        device = entry.run.device
    }
}

extension Listing {
    package var rows: [ListingRow] { entries.map(ListingRow.init) }
}
