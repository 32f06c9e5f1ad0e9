// Files that a periodic job could not import, so that each is reported once, not at every run. A file that changes is
// retried.

internal import Foundation
internal import StallModel
internal import StallArchive
internal import StallStore

/// The list of quarantined files beside the store, one JSON object per line.
struct Quarantine {
    let path: String
    private var entries: [String: Entry]

    private struct Entry: Codable, Equatable {
        var path: String
        var bytes: Int
        var modified: Double
        var error: String
    }

    init(store: String) {
        path = store + "-quarantine.jsonl"
        let text = (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
        let decoder = JSONDecoder()
        entries = [:]
        for line in text.split(separator: "\n") {
            // An unreadable entry is dropped; the file is then retried and listed again.
            if let entry = try? decoder.decode(Entry.self, from: Data(line.utf8)) {
                entries[entry.path] = entry
            }
        }
    }

    var count: Int { entries.count }

    /// Whether the file is quarantined and unchanged since.
    func holds(_ path: String) -> Bool {
        guard let entry = entries[path], let now = Self.entry(path, error: entry.error) else {
            return false
        }
        return now == entry
    }

    /// Adds files that failed, removes files that no longer do, and writes the list.
    mutating func update(_ files: [IngestFileResult]) throws {
        let before = entries
        for file in files {
            if case .skipped(let error) = file.outcome, error.isOfTheFile {
                entries[file.path] = Self.entry(file.path, error: error.description)
            } else {
                entries[file.path] = nil
            }
        }
        // Does not follow links: a dangling link still exists.
        for path in entries.keys where Self.entry(path, error: "") == nil {
            entries[path] = nil
        }
        guard entries != before else { return }
        try Output.write(json: entries.values.sorted { $0.path < $1.path }, to: path)
    }

    private static func entry(_ path: String, error: String) -> Entry? {
        guard let facts = try? FileManager.default.attributesOfItem(atPath: path),
            let bytes = facts[.size] as? Int, let modified = facts[.modificationDate] as? Date
        else { return nil }
        return Entry(
            path: path, bytes: bytes, modified: modified.timeIntervalSince1970, error: error)
    }
}

extension StoreError {
    /// Whether the file itself is broken until it changes, as opposed to a lock, missing permissions or a full disk.
    var isOfTheFile: Bool {
        switch self {
        case .notAFile, .symbolicLink, .empty, .notADatabase, .foreign, .wrongRole,
            .newer, .damaged, .overBudget,
            .sharedIdentity:
            true
        default: false
        }
    }
}
