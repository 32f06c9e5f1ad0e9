// Function names for code locations, from the symbol tables of the images' files, read by ELFFile. Nothing here calls
// the loader (dladdr, dlsym): it waits for a running dlopen, which may be the very stall that is being reported.

internal import CLinux
package import StallModel

/// The sources that symbolication may use and how long it may take.
package struct SymbolizerOptions: Equatable, Sendable {
    /// Directories of separate debug files: by build ID, `<directory>/ab/cdef....debug` or that below
    /// `<directory>/.build-id`; by the name in a stripped binary's debug link, `<directory>/<its path>/<name>`.
    package var debugDirectories = ["/usr/lib/debug"]
    /// Files that are known to have a build ID; they precede the image's own path.
    package var files: [BuildID: [String]] = [:]
    /// Whether to find source lines and inlined calls in addition to names.
    package var findsLines = true
    /// The limit for lines in one call, in CPU time of the calling thread: a process without a CPU finds as much as one
    /// that has its own. Names are always found first.
    package var budget = Duration.milliseconds(200)
    /// Larger parts of a file's debug information are skipped, which limits memory; then only names are found.
    package var debugInformationLimit: UInt64 = 32 << 20

    package init() {}
}

/// Converts code locations to frames.
package struct Symbolizer: Sendable {
    package let options: SymbolizerOptions
    private let decompressor: SectionDecompressor?

    /// Without a decompressor, compressed debug information is ignored.
    package init(
        options: SymbolizerOptions = SymbolizerOptions(), decompressor: SectionDecompressor? = nil
    ) {
        self.options = options
        self.decompressor = decompressor
    }

    /// The frames of every location, innermost first: one, or several if the compiler inlined calls.
    ///
    /// Every location has an entry; without a symbol it is one frame without a function.
    package func frames(
        for locations: [CodeLocation], images: ImageTable
    ) -> [CodeLocation: [Frame]] {
        resolve(locations, images: images, budget: options.budget).frames
    }

    /// The frames of every location, and those locations that may have others, because the budget was used up: calls
    /// that were inlined there are not known yet.
    package func resolve(
        _ locations: [CodeLocation], images: ImageTable, budget: Duration
    ) -> (frames: [CodeLocation: [Frame]], unfinished: Set<CodeLocation>) {
        var answer = Dictionary(locations.map { ($0, [Frame($0)]) }) { first, _ in first }
        var unfinished: Set<CodeLocation> = []
        let byImage = Dictionary(grouping: locations) {
            Binary(path: $0.imagePath, buildID: $0.buildID)
        }
        let limit = Self.threadTime + budget
        // In the loader's order, because the program's own lines are worth more than a library's.
        for image in images.images {
            let binary = Binary(path: image.path, buildID: image.buildID)
            guard let locations = byImage[binary] else { continue }
            let details = details(
                of: image, at: locations.map(\.lookupOffset),
                isOverBudget: {
                    stall_fork_let_pass()
                    return Self.threadTime > limit
                })
            stall_fork_let_pass()
            for location in locations {
                answer[location] = details.frames(at: location)
                if details.isCut, details.contexts[location.lookupOffset] == nil {
                    unfinished.insert(location)
                }
            }
        }
        return (answer, unfinished)
    }

    /// CPU time of the calling thread.
    private static var threadTime: Duration {
        var used_ns: UInt64 = 0
        stall_thread_cpu_ns(stall_gettid(), &used_ns)
        return .nanoseconds(used_ns)
    }

    private struct Binary: Hashable {
        var path: String?
        var buildID: BuildID?
    }

    /// The symbols and source contexts at these offsets of an image, from the files with its build ID.
    private func details(
        of image: Image, at offsets: [UInt64], isOverBudget: @escaping () -> Bool
    ) -> ImageDetails {
        var details = ImageDetails()
        forEachFile(of: image) { _, file in
            let unnamed = offsets.filter { details.symbols[$0] == nil }
            guard !unnamed.isEmpty || (options.findsLines && details.contexts.isEmpty) else {
                return false
            }
            let found = file.namedSymbols(at: unnamed.map { $0 &+ file.lowestAddress })
            for (address, symbol) in found.named {
                var symbol = symbol
                symbol.start &-= file.lowestAddress
                details.symbols[address &- file.lowestAddress] = symbol
            }
            details.merged.formUnion(found.merged.map { $0 &- file.lowestAddress })
            guard options.findsLines else { return true }
            // Unpacking the tables of another image takes time as well.
            guard !isOverBudget() else {
                details.isCut = details.isCut || file.size(of: ".debug_info") != nil
                return true
            }
            guard
                var debug = DebugInformation(
                    file, limit: options.debugInformationLimit, isOverBudget: isOverBudget)
            else { return true }
            for (address, var context) in debug.contexts(
                at: offsets.map { $0 &+ file.lowestAddress })
            {
                context.functionStart? &-= file.lowestAddress
                details.contexts[address &- file.lowestAddress] = context
            }
            details.isCut = details.isCut || debug.isCut
            return true
        }
        return details
    }

    /// Passes every file with the image's build ID to `body`, likeliest first, until it returns false.
    private func forEachFile(of image: Image, _ body: (_ path: String, any ObjectFile) -> Bool) {
        var (paths, seen) = (paths(of: image)[...], Set<String>())
        while let path = paths.popFirst() {
            guard seen.insert(path).inserted, let bytes = bytes(of: image, at: path),
                let files = try? objectFiles(in: bytes, decompressor: decompressor),
                let file = files.first(where: { $0.isFile(of: image) })
            else { continue }
            guard body(path, file) else { return }
            if let name = file.debugLink, image.buildID != nil {
                paths += debugFiles(named: name, besides: path == ownPath ? image.path : path)
            }
        }
    }

    /// The files that this image's names would be read from, likeliest first.
    package func files(of image: Image) -> [SymbolFile] {
        var files: [SymbolFile] = []
        forEachFile(of: image) { path, file in
            files.append(SymbolFile(path: path, file))
            return true
        }
        return files
    }

    /// The addresses and sizes in this process of what an image exports under these names.
    package func exports(
        named names: [String], of image: Image
    ) -> [String: (address: UInt64, size: UInt64)] {
        var found: [String: (address: UInt64, size: UInt64)] = [:]
        forEachFile(of: image) { _, file in
            found = file.exports(named: names).mapValues { symbol in
                (symbol.value &- file.lowestAddress &+ image.loadAddress, symbol.extent)
            }
            return found.isEmpty
        }
        return found
    }

    /// The possible paths of an image's symbols, likeliest first.
    private func paths(of image: Image) -> [String] {
        // The link refers to the running program even if its path now has another build.
        let own = image.path == executablePath() ? ownPath : image.path
        guard let buildID = image.buildID else { return [own] }
        let digits = buildID.description
        let name = "\(digits.prefix(2))/\(digits.dropFirst(2)).debug"
        return options.files[buildID, default: []] + [own]
            + options.debugDirectories.flatMap { ["\($0)/.build-id/\(name)", "\($0)/\(name)"] }
    }

    /// The possible paths of the debug file that a stripped binary names.
    ///
    /// **Source:** GDB manual, "Debugging Information in Separate Files".
    private func debugFiles(named name: String, besides binary: String) -> [String] {
        guard !name.contains("/"), let end = binary.lastIndex(of: "/") else { return [] }
        let directory = binary[..<end]
        return ["\(directory)/\(name)", "\(directory)/.debug/\(name)"]
            + options.debugDirectories.map { "\($0)\(directory)/\(name)" }
    }

    private var ownPath: String { "/proc/thread-self/exe" }

    private func bytes(of image: Image, at path: String) -> (any ByteSource)? {
        path == "[vdso]" ? CopiedBytes(vdso: image) : FileBytes(path: path)
    }
}

/// The symbols and contexts from the files of one image, by offset into the image.
private struct ImageDetails {
    var symbols: [UInt64: NamedSymbol] = [:]
    var contexts: [UInt64: SourceContext] = [:]
    /// Code without a symbol that several functions were merged into.
    var merged: Set<UInt64> = []
    /// The budget was used up before all contexts were found.
    var isCut = false

    /// The function at an offset. The debug information's, where the symbol is of one before it.
    private func symbol(at offset: UInt64) -> NamedSymbol? {
        let symbol = symbols[offset]
        guard let context = contexts[offset], let start = context.functionStart,
            let name = context.positions.last?.function, symbol.map({ $0.start < start }) ?? true
        else { return symbol }
        return NamedSymbol(name: name, isFolded: false, start: start)
    }

    /// The frames at a location: inlined calls, then the function.
    func frames(at location: CodeLocation) -> [Frame] {
        let offset = location.lookupOffset
        let symbol = symbol(at: offset)
        let positions = contexts[offset]?.positions ?? [SourceContext.Position()]
        return positions.enumerated().map { index, position in
            var frame = Frame(location)
            frame.isInlined = index < positions.count - 1
            frame.rawName = frame.isInlined ? position.function : symbol?.name
            frame.function = frame.rawName.map(readableName)
            // The demangler's wording for functions that the compiler merged.
            if !frame.isInlined, symbol?.isFolded == true {
                frame.function = frame.function.map { "merged " + $0 }
            }
            frame.file = position.file
            frame.line = position.line
            if !frame.isInlined, symbol == nil, merged.contains(offset) {
                frame.function = unnamedMergedFunction
                // Of one of the functions, which need not be the one that ran.
                (frame.file, frame.line) = (nil, nil)
            }
            return frame
        }
    }
}

extension ObjectFile {
    /// Symbols of another build would be wrong. Without build IDs, at least the sizes must match.
    fileprivate func isFile(of image: Image) -> Bool {
        guard buildID == image.buildID else { return false }
        return buildID != nil
            || highestAddress - lowestAddress == image.endAddress - image.loadAddress
    }
}
