// Expands globs among paths, because a cron job or unit file has no shell to do it.

internal import Glibc

enum SourcePaths {
    /// Expands globs, in alphabetical order. A path that exists as written is not a glob. A glob without a match is
    /// kept, so that it is reported, unless `allowsUnmatched`.
    static func expanding(_ paths: [String], allowsUnmatched: Bool = false) -> [String] {
        paths.flatMap { path -> [String] in
            guard path != "-", path.contains(where: { "*?[".contains($0) }),
                access(path, F_OK) != 0
            else { return [path] }
            var found = glob_t()
            defer { globfree(&found) }
            let result = glob(path, 0, nil, &found)
            if allowsUnmatched, result == GLOB_NOMATCH { return [] }
            guard result == 0 else { return [path] }
            return (0..<Int(found.gl_pathc)).compactMap { index in
                found.gl_pathv[index].map { String(cString: $0) }
            }
        }
    }
}
