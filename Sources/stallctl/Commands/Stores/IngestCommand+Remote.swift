// `ingest` into a cluster: the same import, into a private store that is then copied.

internal import ArgumentParser
internal import StallAnalysis
internal import StallIngest
internal import StallModel

extension IngestCommand {
    /// Refuses options that need to know of each report whether it is in the store, or a file beside the store.
    func expectRemoteOptions() throws {
        if delete || archive != nil {
            throw ValidationError(
                "--delete and --archive need a store that is a file: whether all of a file is in a cluster is not looked at."
            )
        }
        if keep != nil {
            throw ValidationError("--keep needs a store that is a file; use 'stallctl prune'.")
        }
    }

    /// Imports what is there now.
    ///
    /// - Returns: Whether anything could not be imported.
    func runOnce(
        _ remote: any RemoteStore, _ recognized: RecognizedFiles, _ stop: StopSignal
    ) throws -> Bool {
        let progress = ProgressLine()
        let rules = try grouping.rulesInForce(of: remote, target.path)
        let grouper = DefaultGrouper(rules: rules)
        let files = ReportFiles(options: try foreign.options())
        let result = try remote.ingest(grouper: grouper, rules: rules.text) { path in
            var job = IngestJob(store: path, paths: paths)
            job.allowsUnmatched = allowUnmatched
            job.holdsOnlyNews = true
            let result = try job.run(
                grouper: grouper, quarantine: Quarantine(store: path),
                lines: { descriptor, closesIt in
                    files.feed(descriptor: descriptor, closesIt: closesIt) {
                        stop.waits(forInput: descriptor)
                    }
                },
                isReports: { recognized.hasReports($0) },
                isCancelled: { stop.isRequested }
            ) { progress.show($0) }
            if result.hasChanges { try UnfinishedNames.complete(path: path, grouper: grouper) }
            return result
        }
        progress.clear()
        return try tell(result, of: target.path)
    }
}
