// The files that `ingest` was given or finds.

internal import Glibc
internal import StallModel
internal import StallStore

/// The stores and the files of lines among the paths: files as they are given, and files in directories that look like
/// one.
struct SourceFiles {
    /// The content of a file.
    enum Kind { case store, lines }

    /// In the order given; within a directory by name.
    private(set) var files: [(path: String, kind: Kind)] = []
    /// The given paths that are no file or directory that can be read.
    private(set) var skipped: [IngestFileResult] = []
    private var seen: Set<FileIdentity> = []
    private let isReports: (String) -> Bool
    private let now = UnixTime.now()

    /// In nanoseconds.
    private static let quietTime: Int64 = 2_000_000_000

    private struct FileIdentity: Hashable {
        var device: UInt64
        var inode: UInt64
        init(_ facts: FileFacts) { (device, inode) = (facts.device, facts.inode) }
    }

    /// - Parameters:
    ///   - target: The file that is ingested into: never a source.
    ///   - isReports: Whether a file that is neither a store nor named as lines has reports, in whatever format.
    init(
        _ given: [String], except target: FileFacts?,
        isReports: @escaping (_ path: String) -> Bool = { _ in false }
    ) {
        self.isReports = isReports
        if let target { seen.insert(FileIdentity(target)) }
        for path in given {
            // By tradition, standard input.
            if path == "-" {
                files.append((path, .lines))
                continue
            }
            guard let facts = FileFacts(path) else {
                let reason = String(cString: strerror(errno))
                skip(
                    path,
                    errno == ENOENT ? .missing(path: path) : .cannotOpen(path: path, reason: reason)
                )
                continue
            }
            if facts.isDirectory {
                search(path)
            } else if seen.insert(FileIdentity(facts)).inserted {
                let isLines =
                    !facts.isRegular || Self.isNamedAsLines(path) || Self.begins(path, with: "{")
                    || !Self.isStore(path) && isReports(path)
                files.append((path, isLines ? .lines : .store))
            }
        }
    }

    private static func isNamedAsLines(_ name: String) -> Bool {
        name.hasSuffix(".jsonl") || name.hasSuffix(".ndjson")
    }

    /// Takes the regular files below a directory that are named or look like a database. Links are
    /// not followed: a search always ends, and stays in the directory it was given.
    private mutating func search(_ directory: String) {
        guard let stream = opendir(directory) else {
            let reason = String(cString: strerror(errno))
            return skip(directory, .cannotOpen(path: directory, reason: reason))
        }
        var names: [String] = []
        while let entry = readdir(stream) {
            let bytes = withUnsafeBytes(of: &entry.pointee.d_name) { Array($0.prefix { $0 != 0 }) }
            guard let name = String(validating: bytes, as: UTF8.self) else {
                let path = directory + "/" + String(decoding: bytes, as: UTF8.self)
                skip(path, .cannotOpen(path: path, reason: "the file name is not UTF-8"))
                continue
            }
            if name != "." && name != ".." { names.append(name) }
        }
        closedir(stream)
        for name in names.sorted() {
            let path = directory.hasSuffix("/") ? directory + name : directory + "/" + name
            guard let facts = FileFacts(path, followsLink: false) else {
                // ENOENT: it was there a moment ago.
                let reason = String(cString: strerror(errno))
                if errno != ENOENT { skip(path, .cannotOpen(path: path, reason: reason)) }
                continue
            }
            let isNamedAsSource = Self.isNamedAsLines(name) || name.hasSuffix(".sqlite")
            if facts.isDirectory {
                search(path)
            } else if facts.isSymbolicLink, isNamedAsSource {
                skip(path, .symbolicLink(path: path))
            } else if !facts.isRegular, isNamedAsSource {
                skip(path, .notAFile(path: path))
            } else if facts.isRegular, !seen.contains(FileIdentity(facts)),
                !Self.isBesideAStore(name)
            {
                if isNamedAsSource || Self.isStore(path) {
                    seen.insert(FileIdentity(facts))
                    files.append((path, Self.isNamedAsLines(name) ? .lines : .store))
                } else if isReports(path) {
                    seen.insert(FileIdentity(facts))
                    // A text that is still written has a report that is not whole.
                    if facts.modifiedNanoseconds > now.microseconds * 1000 - Self.quietTime {
                        skip(path, .notReady(path: path))
                    } else {
                        files.append((path, .lines))
                    }
                } else if Self.isCompressedSource(name) {
                    skip(path, .notADatabase(path: path, content: .compressed))
                }
            }
        }
    }

    private mutating func skip(_ path: String, _ error: StoreError) {
        skipped.append(IngestFileResult(path: path, outcome: .skipped(error)))
    }

    /// A store or lines that were compressed: passing it over would lose it.
    private static func isCompressedSource(_ name: String) -> Bool {
        guard let dot = name.lastIndex(of: "."),
            [".gz", ".xz", ".zst", ".bz2"].contains(name[dot...])
        else { return false }
        let plain = String(name[..<dot])
        return isNamedAsLines(plain) || plain.hasSuffix(".sqlite")
    }

    /// SQLite's own files beside a database, and a job's list of broken files. They are not even looked
    /// into: they may be those of the store that is ingested into, and closing them would drop the
    /// locks that we hold there.
    private static func isBesideAStore(_ name: String) -> Bool {
        ["-wal", "-shm", "-journal", "-quarantine.jsonl"].contains { name.hasSuffix($0) }
    }

    static func isStore(_ path: String) -> Bool {
        begins(path, with: "SQLite format 3\0")
    }

    private static func begins(_ path: String, with text: String) -> Bool {
        let expected = Array(text.utf8)
        var start = [UInt8](repeating: 0, count: expected.count)
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        return read(descriptor, &start, start.count) == start.count && start == expected
    }
}
