// Process runs as a store has them: tens of thousands, which share most of their texts.

internal import StallModel
internal import StallStore

/// Reads process runs; equal texts and build IDs share their memory.
struct ProcessRunReader {
    private var texts: Set<String> = []
    private var buildIDs: Set<BuildID> = []
    /// Beyond it, texts of their own are no longer shared.
    private static let limit = 10_000

    mutating func run(_ row: Statement) throws(StoreError) -> ProcessRun {
        var run = try ProcessRun(row)
        run.app = shared(run.app)
        run.version = shared(run.version)
        run.host = shared(run.host)
        run.bootID = shared(run.bootID)
        run.os = run.os.map { shared($0) }
        run.device = run.device.map { shared($0) }
        if let own = run.buildID {
            run.buildID = buildIDs.count < Self.limit ? buildIDs.insert(own).memberAfterInsert : own
        }
        return run
    }

    private mutating func shared(_ text: String) -> String {
        // Shorter ones are in the string itself.
        guard text.utf8.count > 15, texts.count < Self.limit else { return text }
        return texts.insert(text).memberAfterInsert
    }
}
