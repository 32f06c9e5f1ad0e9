// The list of quarantined files, as JSON lines beside the store.

internal import Foundation
internal import StallFormats
internal import StallIngest

extension Quarantine {
    init(store: String) {
        self.init(store: store) { path in
            // An unreadable line is dropped; the file is then retried and listed again.
            JSONLines.objects(in: (try? String(contentsOfFile: path, encoding: .utf8)) ?? "")
        }
    }

    /// Notes the results of a run, and writes the list if it has changed.
    mutating func update(_ files: [IngestFileResult]) throws {
        if note(files) { try Output.write(json: self.files, to: path) }
    }
}
