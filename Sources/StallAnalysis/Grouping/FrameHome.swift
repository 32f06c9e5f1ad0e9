// Whether a C or C++ function belongs to the program's sources or to a library. An app may use any function name, such
// as `dispatch_order` or `sync`; a name identifies a library's function only in that library.

internal import StallModel

/// The facts about a function that follow from its image and its Swift module.
struct FrameHome: Sendable {
    let imageName: String?
    /// Nil in no known image.
    let isLibrary: Bool?
    /// The rules that functions there may fit: see ``GroupingRules/candidates(imagePath:imageName:module:)``.
    let rules: [Int]

    init(_ frame: Frame, module: String?, rules: GroupingRules) {
        imageName = frame.imageName
        isLibrary = frame.imagePath?.isLibraryImage
        self.rules = rules.candidates(
            imagePath: frame.imagePath, imageName: imageName, module: module)
    }
}

/// The homes of frames under some rules. A store has many functions in few images, modules and files.
struct FrameHomes {
    private struct Key: Hashable {
        var imagePath: String?
        var module: String?
    }

    let rules: GroupingRules
    private var homes: [Key: FrameHome] = [:]
    /// Many functions of one image and module are asked for in a row.
    private var last: (key: Key, home: FrameHome)?
    private var headers: [String: Bool] = [:]

    /// The size at which each cache is cleared, to bound memory.
    private static let capacity = 10_000

    init(rules: GroupingRules) { self.rules = rules }

    mutating func home(of frame: Frame, module: String?) -> FrameHome {
        let key = Key(imagePath: frame.imagePath, module: module)
        if let last, last.key == key { return last.home }
        if let known = homes[key] {
            last = (key, known)
            return known
        }
        if homes.count == Self.capacity { homes.removeAll() }
        let home = FrameHome(frame, module: module, rules: rules)
        homes[key] = home
        last = (key, home)
        return home
    }

    /// Whether the frame is compiled from the program's own sources, by its debug information.
    mutating func isOfOwnSource(_ frame: Frame, _ home: FrameHome, executable: BuildID?) -> Bool {
        // gdb names the sources of libc, too, and not always its binary.
        guard let file = frame.file, frame.imagePath != Frame.unknownImage, !isOfOthers(file) else {
            return false
        }
        if let executable, frame.buildID == executable { return true }
        return home.isLibrary.map { !$0 } ?? false
    }

    private mutating func isOfOthers(_ file: String) -> Bool {
        if let known = headers[file] { return known }
        if headers.count == Self.capacity { headers.removeAll() }
        let answer = file.isOfSystemHeader || file.isOfPackage
        headers[file] = answer
        return answer
    }
}

extension FrameHome {
    /// Whether a function there is of a library of the system or the toolchain, in no known image, or known to be of a
    /// statically linked library.
    ///
    /// - Parameter name: Without a linker's suffix.
    func isOfLibrary(_ frame: Frame, named name: String, executable: BuildID?) -> Bool {
        guard let isLibrary else { return true }
        let isProgram = executable != nil && frame.buildID == executable
        if !isProgram, isLibrary { return true }
        // Names that begin with an underscore are reserved for the implementation (C, section "Reserved identifiers");
        // names in a C++ namespace of the runtime are not C names.
        return name.utf8.first == UInt8(ascii: "_") || name.isOfNamespace
            || StaticNames.contain(name)
    }
}

extension String {
    /// Whether it has `::`.
    fileprivate var isOfNamespace: Bool {
        var last: UInt8 = 0
        for byte in utf8 {
            if byte == UInt8(ascii: ":"), last == byte { return true }
            last = byte
        }
        return false
    }

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

    /// Whether it is below the directory that SwiftPM, or Xcode, checks dependencies out into.
    fileprivate var isOfPackage: Bool {
        let path = NameText(self)
        return path.contains("/checkouts/")
            && (path.contains("/.build/") || path.contains("/SourcePackages/"))
    }

    /// Headers of the system and the toolchain, whose inlined functions are in the program's image.
    fileprivate var isOfSystemHeader: Bool {
        // As bytes: a search for characters takes fifty times as long.
        let path = NameText(self)
        return path.starts(with: "/usr/lib/") || path.contains("/usr/include/")
            || path.contains("/usr/lib/swift") || path.contains("/usr/lib/clang/")
            || path.starts(with: "/<") || path.starts(with: "<")
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
