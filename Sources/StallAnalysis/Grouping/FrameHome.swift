// Whether a C or C++ function belongs to the program's sources or to a library. An app may use any function name, such
// as `dispatch_order` or `sync`; a name identifies a library's function only in that library.

internal import StallModel

extension Frame {
    /// Compiled from the program's own sources, by its debug information.
    func isOfOwnSource(executable: BuildID?) -> Bool {
        guard let file, !file.isOfSystemHeader else { return false }
        if let executable, buildID == executable { return true }
        return imagePath.map { !$0.isLibraryImage } ?? false
    }

    /// In a library of the system or the toolchain, in no known image, or known to be of a statically linked library.
    ///
    /// - Parameter name: Without a linker's suffix.
    func isOfLibrary(named name: String, executable: BuildID?) -> Bool {
        guard let imagePath else { return true }
        let isProgram = executable != nil && buildID == executable
        if !isProgram, imagePath.isLibraryImage { return true }
        // Names that begin with an underscore are reserved for the implementation (C, section "Reserved identifiers");
        // names in a C++ namespace of the runtime are not C names.
        return name.hasPrefix("_") || name.contains("::") || StaticNames.contain(name)
    }
}

extension String {
    /// The image of a library that comes with the system or the toolchain, of Linux or of Apple's.
    fileprivate var isLibraryImage: Bool {
        let roots = [
            "/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/", "/usr/libexec/", "/System/", "[",
        ]
        if roots.contains(where: hasPrefix) { return true }
        let name = self[(lastIndex(of: "/").map(index(after:)) ?? startIndex)...]
        let names = [
            "libswift", "lib_Swift", "libFoundation", "lib_Foundation", "libdispatch.",
            "libBlocksRuntime.",
            "libXCTest.", "libTesting.", "lib_Testing", "lib_InternalSwift", "libc.so", "libc-",
            "libpthread",
            "libstdc++.", "libgcc_s.", "libm.so", "ld-linux", "libc++", "ld-musl", "libresolv",
            "libsystem_",
            "libCoreFoundation", "libobjc.",
        ]
        if names.contains(where: { name.hasPrefix($0) }) { return true }
        return [
            "CoreFoundation", "Foundation", "UIKit", "UIKitCore", "AppKit", "GraphicsServices",
            "HIToolbox",
        ]
        .contains { $0 == name }
    }

    /// Headers of the system and the toolchain, whose inlined functions are in the program's image.
    fileprivate var isOfSystemHeader: Bool {
        hasPrefix("/usr/include/") || hasPrefix("/usr/lib/") || contains("/usr/include/")
            || contains("/usr/lib/swift") || contains("/usr/lib/clang/") || hasPrefix("/<")
            || hasPrefix("<")
    }
}

/// The plain names of functions of the toolchain's static libraries: see scripts/static-names.
enum StaticNames {
    private static let names = Set(staticNamesTable.split { $0 == " " || $0 == "\n" })

    static func contain(_ name: String) -> Bool {
        let prefixes = ["dispatch_", "swift_", "objc_", "CF", "uuid_", "voucher_", "OSAtomic"]
        return prefixes.contains(where: name.hasPrefix) && names.contains(name[...])
    }

    /// For the test that compares them with the toolchain's.
    static var count: Int { names.count }
}
