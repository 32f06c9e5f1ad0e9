import Foundation
import Testing

/// Compares text with the file `Snapshots/<name>.txt`; `RECORD_SNAPSHOTS=1` rewrites the file.
func expectSnapshot(
    _ text: String, _ name: String, sourceLocation: SourceLocation = #_sourceLocation
) throws {
    let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("Snapshots/\(name).txt")
    if ProcessInfo.processInfo.environment["RECORD_SNAPSHOTS"] == "1" {
        try Data(text.utf8).write(to: file)
    }
    let expected = String(decoding: try Data(contentsOf: file), as: UTF8.self)
    #expect(text == expected, "\(name) differs from its snapshot", sourceLocation: sourceLocation)
}

func expectSnapshot(
    _ lines: [String], _ name: String, sourceLocation: SourceLocation = #_sourceLocation
) throws {
    try expectSnapshot(lines.map { $0 + "\n" }.joined(), name, sourceLocation: sourceLocation)
}
