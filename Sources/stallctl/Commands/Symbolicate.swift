// `symbolicate`: better names for the places of a store. Symbolication.swift asks and tells.

internal import ArgumentParser
internal import Foundation
internal import StallAnalysis
internal import StallModel
internal import StallStore
internal import StallSymbols

struct Symbolicate: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Name the functions, lines and inlined calls of a store again.",
        discussion: """
            For reports of programs that were stripped or ran without their debug
            files. Names come from the given binaries or debug files, from the
            directories of debug files, and from the images' own paths and
            /usr/lib/debug on this machine; always from a file with the build ID of
            the image that ran, else from none. What was known already is only
            replaced by what says as much or more. An agent may be writing the store.

            The exit code is 1 when a given file could not be used.

            EXAMPLES
              stallctl symbolicate build/photos
              stallctl symbolicate --store all.sqlite --debug-dir /srv/symbols
              stallctl symbolicate --version 2.3.0 --json artifacts/2.3.0
            """)

    @OptionGroup var target: StoreOptions
    @OptionGroup var filters: FilterOptions

    @Option(
        help: ArgumentHelp(
            "Look here for debug files too: xx/yyyy.debug by build ID, or as .gnu_debuglink names them. Repeatable.",
            valueName: "directory"),
        completion: .directory)
    var debugDir: [String] = []

    @OptionGroup var grouping: GroupingOptions
    @OptionGroup var output: OutputOptions

    @Argument(
        help: ArgumentHelp(
            "Binaries with symbols, separate debug files, or directories to search for such.",
            valueName: "binary"),
        completion: .file())
    var binaries: [String] = []

    func run() throws {
        let store = try LocationStore(
            path: target.path, grouper: DefaultGrouper(rules: grouping.rules(forStore: target.path))
        )
        let (places, skipped) = try store.places(filters.filter)
        let images = UnresolvedImages(places.map(\.location))
        let search = SymbolFileSearch(binaries, debugDirectories: debugDir, for: images)
        for refusal in search.refusals { say("stallctl: \(refusal)".printable) }

        let symbolizer = Symbolizer(options: search.options, decompressor: decompressSection)
        let names = symbolizer.frames(
            for: places.map(\.location), images: ImageTable(images: images.images))
        let changed = try store.rename(names)
        let outcome = Symbolication(
            places: try store.places(filters.filter).places, changed: changed,
            withoutBuildID: skipped, refusals: search.refusals,
            files: images.images.map { symbolizer.files(of: $0) }, images: images.images)
        try store.close()

        if output.json {
            try Output.write(json: [Symbolication.Row(outcome, store: target.path)])
        } else {
            try Output.write(lines: outcome.lines(store: target.path, output.colors.terminal))
        }
        if places.isEmpty, skipped == 0 {
            try filters.explainEmptyAnswer(from: target.open())
        }
        if !search.refusals.isEmpty { throw ExitCode.failure }
    }
}
