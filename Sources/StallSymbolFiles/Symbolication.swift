// Resolves the locations of a store again, from symbol files given by a user and those of this machine. For programs
// that no app links: unlike the agent, it has time, and a library to decompress debug sections.

package import StallModel
package import StallQuery
package import StallSymbols

/// Symbols for the locations of a store.
package struct Symbolication {
    /// The given files that are not used.
    package let refusals: [SymbolFileError]
    private let images: [Image]
    private let symbolizer: Symbolizer

    /// - Parameters:
    ///   - locations: The locations to resolve; those without a build ID are not.
    ///   - files: Binaries, separate debug files, dSYMs, or directories of these.
    ///   - dSYMs: Bundles, directories and archives with bundles, or Mach-O files.
    ///   - debugDirectories: Searched by build ID and by the name in a debug link, before those of this machine.
    package init(
        of locations: [CodeLocation], files: [String], dSYMs: [String] = [],
        debugDirectories: [String],
        decompressor: @escaping SectionDecompressor
    ) {
        let unresolved = UnresolvedImages(locations)
        let search = SymbolFileSearch(
            files, dSYMs: dSYMs, debugDirectories: debugDirectories, for: unresolved)
        refusals = search.refusals
        images = unresolved.images
        symbolizer = Symbolizer(options: search.options, decompressor: decompressor)
    }

    /// The frames of every location, innermost first; without a symbol, one frame without a function.
    package func frames(for locations: [CodeLocation]) -> [CodeLocation: [Frame]] {
        symbolizer.frames(for: locations, images: ImageTable(images: images))
    }

    /// The outcome for the images.
    ///
    /// - Parameters:
    ///   - locations: As the store has them now.
    ///   - changed: Those that have other names than before.
    ///   - withoutBuildID: How many more are in images without a build ID.
    package func result(
        _ locations: [StoredLocation], changed: Set<CodeLocation>, withoutBuildID: Int
    ) -> SymbolicationResult {
        var result = SymbolicationResult(
            images: images.map { .init(image: $0, files: symbolizer.files(of: $0)) },
            withoutBuildID: withoutBuildID, refusals: refusals)
        for location in locations {
            result.count(location, isChanged: changed.contains(location.location))
        }
        return result
    }
}
