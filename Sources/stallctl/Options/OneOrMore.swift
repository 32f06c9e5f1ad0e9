// A check that many commands make of the numbers they are given.

internal import ArgumentParser

/// Refuses a count below one; nil, an option that was not given, is fine.
func expectOneOrMore(_ count: Int?, _ option: String) throws {
    if let count, count < 1 {
        throw ValidationError("\(option) must be 1 or more; it was \(count).")
    }
}
