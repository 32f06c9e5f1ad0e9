// A loaded binary: the executable, a shared library, or the vDSO.

/// A binary that was mapped into the process, with where it was mapped.
public struct Image: Hashable, Sendable {
    /// The path it was loaded from; `[vdso]` for the kernel's own image.
    public var path: String
    /// Its build ID, when it carries one. Symbols are only ever taken from a file with the same one.
    public var buildID: BuildID?
    /// The lowest mapped address of its segments.
    public var loadAddress: UInt64
    /// One past the highest mapped address.
    public var endAddress: UInt64

    /// Describes one mapped binary.
    public init(path: String, buildID: BuildID?, loadAddress: UInt64, endAddress: UInt64) {
        self.path = path
        self.buildID = buildID
        self.loadAddress = loadAddress
        self.endAddress = endAddress
    }

    /// The last path component.
    public var name: String { path.split(separator: "/").last.map(String.init) ?? path }
}
