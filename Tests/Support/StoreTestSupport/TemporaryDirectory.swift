// A directory that goes away with the test.

import Foundation

package final class TemporaryDirectory {
    package let path: String

    package init() throws {
        path = NSTemporaryDirectory() + "stallstore-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    /// The path of a file in it.
    package func callAsFunction(_ name: String) -> String { path + "/" + name }
}
