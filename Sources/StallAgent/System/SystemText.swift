// System queries at the agent's start: paths, variables, small files. Through libc, because the first use of
// Foundation's equivalents creates locales, bundles and a file manager, in an app that may never need them.

internal import CLinux
internal import Glibc

/// The values of those environment variables that are set. None in a program with more rights than its caller (setuid,
/// file capabilities): the agent would make and read files with those rights wherever the caller says.
func processEnvironment(_ names: [String]) -> [String: String] {
    var values: [String: String] = [:]
    for name in names {
        if let value = stall_environment(name) { values[name] = String(cString: value) }
    }
    return values
}

/// The working directory; empty if it does not exist any more.
func currentDirectory() -> String {
    guard let path = getcwd(nil, 0) else { return "" }
    defer { free(path) }
    return String(cString: path)
}

/// The content of a file. Nil if it cannot be read, or has `limit` bytes or more.
func fileContent(_ path: String, below limit: Int) -> [UInt8]? {
    let file = stall_descriptor_open_to_read(path, 0)
    guard file >= 0 else { return nil }
    defer { stall_descriptor_end(file) }
    var bytes = [UInt8](repeating: 0, count: limit)
    var count = 0
    while count < limit {
        let more = bytes.withUnsafeMutableBytes { buffer in
            read(file, buffer.baseAddress! + count, limit - count)
        }
        if more == 0 { return Array(bytes[..<count]) }
        if more < 0, errno != EINTR { return nil }
        count += max(0, more)
    }
    return nil
}

extension String {
    /// The directory of a path, without a trailing slash; a dot if the path has none.
    var directoryPath: String {
        guard let slash = lastIndex(of: "/") else { return "." }
        let directory = self[..<slash]
        return directory.allSatisfy { $0 == "/" } ? "/" : String(directory)
    }

    /// The last component of a path.
    var fileName: String { lastIndex(of: "/").map { String(self[index(after: $0)...]) } ?? self }

    /// The last component of a path, before and from its last dot. A name that begins with its only dot has no suffix.
    var fileNameParts: (name: String, suffix: String) {
        let name = fileName
        guard let dot = name.lastIndex(of: "."), dot > name.startIndex else { return (name, "") }
        return (String(name[..<dot]), String(name[dot...]))
    }

    /// The path of a file beside this one: `a/app.sqlite` with `-fork1` is `a/app-fork1.sqlite`.
    func withSuffix(_ mark: String) -> String {
        let (name, suffix) = fileNameParts
        return "\(directoryPath)/\(name)\(mark)\(suffix)"
    }
}
