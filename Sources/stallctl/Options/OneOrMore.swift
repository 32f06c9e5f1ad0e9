// Validation shared by the counts on the command line.

internal import ArgumentParser

/// Rejects a count below one; nil means that the option was not given.
func expectOneOrMore(_ count: Int?, _ option: String) throws {
    if let count, count < 1 {
        throw ValidationError("\(option) must be 1 or more; it was \(count).")
    }
}
