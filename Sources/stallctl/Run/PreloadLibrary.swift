// The objects that `run` loads into programs.

internal import Foundation
internal import Glibc

enum PreloadLibrary: String {
    /// Finds the loops, and loads the agent.
    case loops = "libstallwatch-preload.so"
    /// Calls that may block.
    case blocking = "libstallwatch-blocking.so"
    /// Those of Dispatch.
    case dispatch = "libstallwatch-dispatch.so"

    /// The first of: beside stallctl, as in a checkout; `../lib/stallwatch`, as it is installed.
    func find() throws -> String {
        let executable =
            try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        let folder = String(executable[..<(executable.lastIndex(of: "/") ?? executable.endIndex)])
        return try choose(
            from: [folder, folder + "/../lib/stallwatch"], isReadable: { access($0, R_OK) == 0 })
    }

    func choose(from folders: [String], isReadable: (String) -> Bool) throws -> String {
        let paths = folders.map { $0 + "/" + rawValue }
        guard let path = paths.first(where: isReadable) else {
            throw RunProblem(
                "not watched: \(rawValue) is neither beside stallctl nor in ../lib/stallwatch; in a checkout, 'make preload' builds it"
            )
        }
        let real = realpath(path, nil).map { pointer in
            defer { free(pointer) }
            return String(cString: pointer)
        }
        let absolute = real ?? path
        // The dynamic linker takes both for separators.
        guard !absolute.contains(where: { $0 == " " || $0 == ":" }) else {
            throw RunProblem(
                "not watched: the path of \(rawValue) contains a space or a colon: \(absolute)")
        }
        return absolute
    }
}
