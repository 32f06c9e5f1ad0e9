// Where the sources are that the tests were built from.

package import Foundation

/// The checkout.
package enum Repository {
    /// The folder of Package.swift.
    package static let root: URL = {
        var folder = URL(filePath: #filePath).deletingLastPathComponent()
        while !FileManager.default.fileExists(atPath: folder.appending(path: "Package.swift").path)
        {
            precondition(folder.path != "/", "no Package.swift above \(#filePath)")
            folder.deleteLastPathComponent()
        }
        return folder
    }()
}
