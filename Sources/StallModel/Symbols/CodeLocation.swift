// A position in an image's code, independent of the load address: stored, hashed and symbolized again later.

/// An offset in an image's code.
package struct CodeLocation: Hashable, Sendable {
    /// The image's path, or nil if the address is in no known image (generated code, a lost mapping).
    package var imagePath: String?
    package var buildID: BuildID?
    /// The address minus the image's load address; the absolute address without an image.
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

    /// Converts an address to an offset in the image that contains it, if any.
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
