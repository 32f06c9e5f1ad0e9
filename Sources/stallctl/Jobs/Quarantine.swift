// Files that a periodic job found broken, so that it complains of each once and not every minute. A
// file that changes is tried again.

internal import Foundation
internal import StallModel
internal import StallArchive
internal import StallStore

/// The list of broken files, kept beside the store: a JSON object a line.
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
            // Our own list: what cannot be read is found out again.
            if let entry = try? decoder.decode(Entry.self, from: Data(line.utf8)) {
                entries[entry.path] = entry
            }
        }
    }

    var count: Int { entries.count }

    /// Whether the file was found broken as it is now.
    func holds(_ path: String) -> Bool {
        guard let entry = entries[path], let now = Self.entry(path, error: entry.error) else {
            return false
        }
        return now == entry
    }

    /// Notes which files are broken, forgets those that are not any more, and writes the list.
    mutating func update(_ files: [IngestFileResult]) throws {
        let before = entries
        for file in files {
            if case .skipped(let error) = file.outcome, error.isOfTheFile {
                entries[file.path] = Self.entry(file.path, error: error.description)
            } else {
                entries[file.path] = nil
            }
        }
        // A link is there also when it leads nowhere.
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
    /// The file itself is wrong and stays so until it changes; not a lock, a right or a full disk.
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
