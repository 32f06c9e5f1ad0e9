// A loaded binary: the executable, a shared library, or the vDSO.

/// A binary that was mapped into the process, with its addresses.
public struct Image: Hashable, Sendable {
    /// The path it was loaded from; `[vdso]` for the kernel's own image.
    public var path: String
    /// Its build ID, if it has one. Symbols are only ever read from a file with the same one.
    public var buildID: BuildID?
    /// The lowest mapped address of its segments.
    public var loadAddress: UInt64
    /// One past the highest mapped address.
    public var endAddress: UInt64

    /// Creates an image from its path and addresses.
    public init(path: String, buildID: BuildID?, loadAddress: UInt64, endAddress: UInt64) {
        self.path = path
        self.buildID = buildID
        self.loadAddress = loadAddress
        self.endAddress = endAddress
    }

    /// The last path component.
    public var name: String { path.split(separator: "/").last.map(String.init) ?? path }
}
