// Patterns among paths: a job's line has no shell that would expand them.

internal import Glibc

enum SourcePaths {
    /// The paths with patterns replaced by what they match, in alphabetical order. What exists under
    /// its own name is no pattern; a pattern that matches nothing stays, to be reported, unless that is allowed.
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
