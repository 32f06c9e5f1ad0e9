// A frame that no image contains, with the names that its runtime gives: a line of an interpreted program, or a function
// that was compiled at run time.

/// The names of a frame by its interpreter, or by its compiler at run time.
package struct ScriptFrame: Hashable, Sendable {
    /// As the language spells it: `Handler.answer`, `outer.<locals>.inner`.
    package var function: String
    /// The source file as its runtime knows it, which may be a name like `<string>`; nil if unknown.
    package var file: String?
    /// From 1; nil if unknown.
    package var line: Int?

    package init(function: String, file: String? = nil, line: Int? = nil) {
        self.function = function
        self.file = file
        self.line = line
    }

    /// Takes the position of a build ID: without it, a line of another version of the file would have this one's name.
    private var identity: BuildID {
        var hash = ContentHash()
        hash.combine(function)
        return withUnsafeBytes(of: UInt64(bitPattern: hash.value).bigEndian) { BuildID(bytes: $0) }
    }

    /// The image of one without a file.
    fileprivate static let nowhere = "(generated)"

    /// Where it is stored: the file as its image, and the line as its offset.
    package var location: CodeLocation {
        CodeLocation(
            imagePath: file ?? Self.nowhere, buildID: identity, offset: UInt64(max(line ?? 0, 0)),
            kind: .interrupted)
    }

    /// As symbolication would have found it: the file is its image as well.
    package var frame: Frame {
        var frame = Frame(location)
        frame.function = function
        frame.rawName = function
        frame.file = file
        frame.line = line
        return frame
    }
}

extension Frame {
    /// Whether its names are of a runtime, not of an image's symbols.
    package var isScript: Bool {
        function != nil && (imagePath == ScriptFrame.nowhere || (file != nil && file == imagePath))
    }
}
