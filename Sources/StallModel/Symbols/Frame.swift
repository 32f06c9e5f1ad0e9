// One line of a symbolized stack.

/// A function on a stack. An address yields one frame, or several when the compiler inlined calls there.
public struct Frame: Hashable, Sendable {
    /// The readable, short name (`closure #1 in Timeline.tick()`); nil if the image has no symbol there.
    public var function: String?
    /// The symbol as spelled in the image (`$s8Timeline4tick...`), if known.
    public var rawName: String?
    /// The path of the image that contains the code; nil for generated or unknown code.
    public var imagePath: String?
    /// The image's build ID, if it has one.
    public var buildID: BuildID?
    /// The address minus the image's load address.
    public var offset: UInt64
    /// The kind of the address, which decides the lookup address.
    public var kind: CodeAddressKind
    /// The source file, if line tables were found.
    public var file: String?
    /// The line in `file`, from 1.
    public var line: Int?
    /// The compiler inlined this function into the next frame.
    public var isInlined: Bool
    /// The unwinder had to guess a register to get here.
    public var isGuessed: Bool

    /// A frame with nothing but its location; symbolication fills in the rest.
    package init(_ location: CodeLocation) {
        imagePath = location.imagePath
        buildID = location.buildID
        offset = location.offset
        kind = location.kind
        isInlined = false
        isGuessed = location.isGuessed
    }

    /// The last component of the image's path.
    public var imageName: String? {
        imagePath.map { path in
            guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return path }
            let name = path[path.utf8.index(after: slash)...]
            guard name.isEmpty else { return String(name) }
            return path.split(separator: "/").last.map(String.init) ?? path
        }
    }

    /// The image of a function of which another program's report has only the name. Not in brackets, as the kernel's images
    /// are.
    package static let unknownImage = "(unknown)"

    /// The function, or `image+0x1f40` where there is no symbol.
    public var title: String {
        function ?? (imageName ?? "unknown") + "+0x" + String(offset, radix: 16)
    }
}

/// Shown for code without a symbol that a compiler made of several functions. The demangler's wording for merged functions
/// that have one begins as this does.
package let unnamedMergedFunction = "merged code without a symbol"
