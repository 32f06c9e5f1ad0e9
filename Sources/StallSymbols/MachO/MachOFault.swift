// Why a file that begins like a Mach-O file is not read.

/// A position in the file, and the expectation that it does not meet.
package struct MachOFault: Error, Hashable, Sendable, CustomStringConvertible {
    /// As `load command 3 at byte 152`.
    package let place: String
    /// As `has 5 bytes; expected 8 or more`.
    package let problem: String

    init(_ place: String, _ problem: String) {
        self.place = place
        self.problem = problem
    }

    package var description: String { "\(place) \(problem)" }
}
