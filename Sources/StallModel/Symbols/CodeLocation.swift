// Where a stack points, independent of where the loader put the image: what is stored, hashed and symbolized again.

/// A place in an image's code.
package struct CodeLocation: Hashable, Sendable {
    /// The image's path, or nil when the address lay in no known image (generated code, a lost mapping).
    package var imagePath: String?
    package var buildID: BuildID?
    /// The address less the image's load address; the absolute address when there is no image.
    package var offset: UInt64
    package var kind: CodeAddressKind
    package var isGuessed: Bool

    package init(
        imagePath: String?, buildID: BuildID?, offset: UInt64, kind: CodeAddressKind,
        isGuessed: Bool = false
    ) {
        self.imagePath = imagePath
        self.buildID = buildID
        self.offset = offset
        self.kind = kind
        self.isGuessed = isGuessed
    }

    /// Places an address in the image that holds it, or in none.
    package init(_ address: CodeAddress, in image: Image?) {
        imagePath = image?.path
        buildID = image?.buildID
        offset = address.rawValue &- (image?.loadAddress ?? 0)
        kind = address.kind
        isGuessed = address.isGuessed
    }

    /// The offset to look up in symbol and line tables.
    package var lookupOffset: UInt64 { kind == .returnAddress && offset > 0 ? offset - 1 : offset }
}
