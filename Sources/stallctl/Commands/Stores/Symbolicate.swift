// `symbolicate`: resolves the symbols of a store's locations again. SymbolicationView.swift renders the result.

internal import ArgumentParser
internal import StallAnalysis
internal import StallIngest
internal import StallModel
import StallQuery
internal import StallSymbolFiles

struct Symbolicate: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Resolve functions, lines and inlined calls from binaries or debug files.",
        discussion: """
            For reports of programs that were stripped or ran without their debug
            files. Symbols come from the given binaries or debug files, from the
            --debug-dir directories, and from the images' own paths and /usr/lib/debug
            on this machine; a file is used only if its build ID is that of the image.
            Known names are replaced only by equally or more detailed ones. Safe while
            an agent writes the store.

            Reports of Apple's systems get their names from dSYMs (--dsym), matched by
            UUID alone: MetricKit's never have names, .ips files often have none.

            The exit code is 1 if a given file could not be used.

            EXAMPLES
              stallctl symbolicate build/photos
              stallctl symbolicate --store all.sqlite --debug-dir /srv/symbols
              stallctl symbolicate --version 2.3.0 --json artifacts/2.3.0
              stallctl symbolicate --dsym Photos.xcarchive --dsym Charts.dSYM
            """)

    @OptionGroup var target: StoreOptions
    @OptionGroup var filters: FilterOptions

    @Option(
        help: ArgumentHelp(
            "Directory to search for debug files, by build ID (xx/yyyy.debug) or .gnu_debuglink name. Repeatable.",
            valueName: "directory"),
        completion: .directory)
    var debugDir: [String] = []

    @Option(
        name: .customLong("dsym"),
        help: ArgumentHelp(
            "dSYM bundle, Mach-O file, or directory or .xcarchive to search for bundles. Repeatable.",
            valueName: "path"),
        completion: .file())
    var dSYMs: [String] = []

    @OptionGroup var grouping: GroupingOptions
    @OptionGroup var output: OutputOptions

    @Argument(
        help: ArgumentHelp(
            "Binaries with symbols, separate debug files, dSYMs, or directories of these.",
            valueName: "binary"),
        completion: .file())
    var binaries: [String] = []

    func run() throws {
        try target.expectFile(for: "symbolicate")
        let store = try LocationStore(
            path: target.path,
            grouper: DefaultGrouper(rules: grouping.rulesInForce(ofFile: target.path))
        )
        let (places, skipped) = try store.places(filters.filter)
        let locations = places.map(\.location)
        let symbols = Symbolication(
            of: locations, files: binaries, dSYMs: dSYMs, debugDirectories: debugDir,
            decompressor: decompressSection)
        for refusal in symbols.refusals { say("stallctl: \(refusal)".printable) }
        let changed = try store.rename(symbols.frames(for: locations))
        let result = symbols.result(
            try store.places(filters.filter).places, changed: changed, withoutBuildID: skipped)
        try store.close()

        if output.json {
            try Output.write(json: [SymbolicationRow(result, store: target.path)])
        } else {
            try output.show(result.lines(store: target.path, output.terminal))
        }
        if places.isEmpty, skipped == 0 {
            try filters.explainEmptyAnswer(from: target.open())
        }
        if !symbols.refusals.isEmpty { throw ExitCode.failure }
    }
}
