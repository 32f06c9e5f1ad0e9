// Imports files of JSON lines, some thousands of lines a transaction.

internal import StallModel
internal import StallQuery
internal import StallStore

extension Ingest {
    /// Imports the rows of a file of lines, in as many transactions as it takes.
    func importLines(
        _ path: String, _ open: ((String) throws(StoreError) -> any ReportFeed)?,
        _ isCancelled: () -> Bool
    ) throws(StoreError) -> (file: IngestFileResult, isCancelled: Bool) {
        var result = IngestFileResult(path: path, outcome: .taken(added: 0, changed: 0))
        let before = path == "-" ? nil : SourceFileState(path)
        var feed: any ReportFeed
        do throws(StoreError) {
            guard let open else { throw .notADatabase(path: path) }
            feed = try open(path)
        } catch {
            result.outcome = .skipped(error)
            return (result, false)
        }
        result.otherFormat = feed.otherFormat
        var counts = (added: 0, changed: 0)
        let importedBefore = importedCount
        while true {
            let isAtEnd = try importLineBatch(&feed, &counts, &result)
            result.outcome = .taken(added: counts.added, changed: counts.changed)
            importedCount = importedBefore + counts.added + counts.changed
            // Polled first: a request to stop ends the reading, too.
            if isCancelled() { return (result, true) }
            if isAtEnd { break }
        }
        if verifies, path != "-" {
            result.missingLineCount += result.leftOutCount + result.unknownLineCount
        }
        // A later version of this program may know the lines that this one does not.
        if result.lineFaultCount == 0, result.missingLineCount == 0, result.unknownLines.isEmpty {
            result.finishedAs = before?.file
            if before?.isSettled(at: clock()) == true { try write { try note(path, before, $0) } }
        }
        return (result, false)
    }

    /// - Returns: Whether the file is at its end.
    private func importLineBatch(
        _ feed: inout any ReportFeed, _ counts: inout (added: Int, changed: Int),
        _ result: inout IngestFileResult
    ) throws(StoreError) -> Bool {
        // Reading may wait for the writer of the pipe, which must not hold up other jobs.
        var batch: [(line: Int, row: PortableRow)] = []
        var isAtEnd = false
        let start = feed.byteCount
        while batch.count < Self.linesPerBatch, feed.byteCount - start < Self.lineBytesPerBatch {
            do throws(LineFault) {
                guard let row = try feed.next() else {
                    isAtEnd = true
                    break
                }
                if case .unknown(let schema) = row {
                    result.noteUnknown(schema)
                } else {
                    batch.append((feed.lineNumber, row))
                }
            } catch {
                result.note(error)
                if feed.hasFailed {
                    isAtEnd = true
                    break
                }
            }
        }
        guard !batch.isEmpty else { return isAtEnd }
        try write { writer in
            var taken: [PortableReport] = []
            var others: [PortableRow] = []
            for (line, row) in batch {
                do {
                    let outcome = try writer.take(row)
                    // Only reports are counted.
                    guard case .report(let report) = row else {
                        if verifies { others.append(row) }
                        continue
                    }
                    if verifies, outcome != .pruned, outcome != .leftOut { taken.append(report) }
                    switch outcome {
                    case .added: counts.added += 1
                    case .changed: counts.changed += 1
                    case .leftOut: result.leftOutCount += 1
                    case .pruned, nil: break
                    }
                } catch let fault as LineFault {
                    result.note(LineFault(line: line, reason: fault.reason))
                }
            }
            guard verifies else { return }
            result.missingLineCount += try writer.missingCount(taken)
            result.missingLineCount += try writer.missingCount(others)
        }
        return isAtEnd
    }

    private static let linesPerBatch = 10_000
    private static let lineBytesPerBatch = 16 << 20
}
