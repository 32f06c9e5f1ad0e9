// Notes which tests have begun to run: Swift Testing says so of a test before a thread has it.

import Foundation

/// Adds the test's name to the file that BEGAN names.
func began(_ name: String = #function) {
    guard let path = getenv("BEGAN") else { return }
    let file = open(path, O_WRONLY | O_CREAT | O_APPEND, 0o600)
    let line = name.prefix { $0 != "(" } + "\n"
    Array(line.utf8).withUnsafeBytes { _ = write(file, $0.baseAddress, $0.count) }
    close(file)
}
