// A directory that goes away with the test.

import Foundation

final class TemporaryDirectory {
    let path: String

    init() throws {
        path = NSTemporaryDirectory() + "stallstore-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    /// The path of a file in it.
    func callAsFunction(_ name: String) -> String { path + "/" + name }
}
