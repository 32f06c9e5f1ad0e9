// Names for places in images. They come from the symbol tables of the images' files, read by ELFFile. Nothing here asks
// the loader (dladdr, dlsym): that waits behind a dlopen, which may be the very stall that is being reported.

package import StallModel

/// What symbolication may use.
package struct SymbolizerOptions: Hashable, Sendable {
    /// Where separate debug files are, by build ID: `<directory>/.build-id/ab/cdef....debug`.
    package var debugDirectories = ["/usr/lib/debug"]

    package init() {}
}

/// Turns places in images into frames.
package struct Symbolizer: Sendable {
    package let options: SymbolizerOptions

    package init(options: SymbolizerOptions = SymbolizerOptions()) { self.options = options }

    /// The frames of every location: one, or several where the compiler inlined calls, innermost first.
    ///
    /// Every location gets an answer; one without a symbol yields one frame without a function.
    package func frames(
        for locations: [CodeLocation], images: ImageTable
    ) -> [CodeLocation: [Frame]] {
        var answer: [CodeLocation: [Frame]] = [:]
        for (path, locations) in Dictionary(grouping: locations, by: \.imagePath) {
            let image = images.images.first(where: { $0.path == path })
            let names = image.map { symbols(of: $0, at: locations.map(\.lookupOffset)) }
            for location in locations {
                var frame = Frame(location)
                frame.rawName = names?[location.lookupOffset]
                frame.function = frame.rawName.map(readableName)
                answer[location] = [frame]
            }
        }
        return answer
    }

    /// The symbols at these offsets into an image, from every file that carries the image's build ID.
    private func symbols(of image: Image, at offsets: [UInt64]) -> [UInt64: String] {
        var symbols: [UInt64: String] = [:]
        for path in paths(of: image) where offsets.contains(where: { symbols[$0] == nil }) {
            guard let bytes = bytes(of: image, at: path), let file = ELFFile(bytes),
                file.isFile(of: image)
            else { continue }
            let wanted = offsets.filter { symbols[$0] == nil }.map { $0 &+ file.lowestAddress }
            for (address, symbol) in file.symbols(at: wanted) {
                symbols[address &- file.lowestAddress] = symbol
            }
        }
        return symbols
    }

    /// Where an image's symbols may be, the likeliest first.
    private func paths(of image: Image) -> [String] {
        // The link leads to the running program also when its path now holds another build.
        let own = image.path == executablePath() ? "/proc/self/exe" : image.path
        guard let digits = image.buildID?.description else { return [own] }
        return [own]
            + options.debugDirectories.map { directory in
                "\(directory)/.build-id/\(digits.prefix(2))/\(digits.dropFirst(2)).debug"
            }
    }

    private func bytes(of image: Image, at path: String) -> (any ByteSource)? {
        path == "[vdso]" ? CopiedBytes(vdso: image) : FileBytes(path: path)
    }
}

extension ELFFile {
    /// Symbols of another build would be wrong names. Without build IDs, at least the sizes must agree.
    fileprivate func isFile(of image: Image) -> Bool {
        guard buildID == image.buildID else { return false }
        return buildID != nil
            || highestAddress - lowestAddress == image.endAddress - image.loadAddress
    }
}
