// The result of `symbolicate` as text and JSON.

internal import StallModel
internal import StallArchive
internal import StallSymbols

/// The outcome, per image.
struct Symbolication {
    struct ImageOutcome {
        var image: Image
        var files: [SymbolFile]
        var placeCount = 0
        var namedCount = 0
        var lineCount = 0
        var changedCount = 0

        /// The file that provided the names, or what is missing.
        var source: String {
            guard !files.isEmpty else { return "no file has this build ID" }
            let useful =
                files.first(where: \.hasLines) ?? files.first(where: \.hasSymbols) ?? files[0]
            if useful.hasLines { return useful.path }
            if files.contains(where: \.isCompressed) {
                return useful.path + " (the line table is compressed and could not be read)"
            }
            return useful.hasSymbols ? useful.path : useful.path + " (stripped)"
        }
    }

    private(set) var images: [ImageOutcome]
    let withoutBuildID: Int
    let refusals: [SymbolFileError]

    init(
        places: [StoredLocation], changed: Set<CodeLocation>, withoutBuildID: Int,
        refusals: [SymbolFileError], files: [[SymbolFile]], images: [Image]
    ) {
        self.withoutBuildID = withoutBuildID
        self.refusals = refusals
        self.images = zip(images, files).map { ImageOutcome(image: $0, files: $1) }
        let keys = self.images.enumerated().map { (Key($1.image.path, $1.image.buildID), $0) }
        let indexes = Dictionary(keys) { first, _ in first }
        for place in places {
            guard let index = indexes[Key(place.location.imagePath, place.location.buildID)] else {
                continue  // added by an agent meanwhile
            }
            self.images[index].placeCount += 1
            if place.frames.contains(where: { $0.function != nil }) {
                self.images[index].namedCount += 1
            }
            if place.frames.contains(where: { $0.line != nil }) {
                self.images[index].lineCount += 1
            }
            if changed.contains(place.location) { self.images[index].changedCount += 1 }
        }
    }

    private struct Key: Hashable {
        var path: String?
        var buildID: BuildID?
        init(_ path: String?, _ buildID: BuildID?) { (self.path, self.buildID) = (path, buildID) }
    }

    private func sum(_ count: KeyPath<ImageOutcome, Int>) -> Int {
        images.reduce(0) { $0 + $1[keyPath: count] }
    }

    /// A table of the images, and a summary.
    func lines(store: String, _ terminal: Terminal) -> [String] {
        var table = Table(
            columns: [
                .init("IMAGE"), .init("BUILD ID", spare: 4), .init("PLACES", .trailing, spare: 2),
                .init("NAMED", .trailing, spare: 1), .init("LINES", .trailing, spare: 3),
                .init("CHANGED", .trailing), .init("FROM"),
            ], othersFirst: 10)
        table.rows = images.map { outcome in
            [
                .init(outcome.image.name),
                .init(String(outcome.image.buildID?.description.prefix(12) ?? "")),
                .init("\(outcome.placeCount)"), .init("\(outcome.namedCount)"),
                .init("\(outcome.lineCount)"), .init("\(outcome.changedCount)"),
                .init(outcome.source, style: outcome.files.isEmpty ? .faint : nil),
            ]
        }
        let found = images.count { !$0.files.isEmpty }
        var sentence =
            "\(store.printable): \(counted(sum(\.placeCount), "location")) in "
            + "\(counted(images.count, "image")), symbol files for \(found) of them; "
            + "\(sum(\.changedCount)) changed; \(sum(\.namedCount)) have function names, "
            + "\(sum(\.lineCount)) have line numbers"
        if withoutBuildID > 0 {
            sentence +=
                "; \(counted(withoutBuildID, "location")) in images without a build ID not changed"
        }
        return (images.isEmpty ? [] : table.lines(for: terminal) + [""])
            + sentence.wrapped(to: terminal.columns)
    }

    /// The outcome as JSON.
    struct Row: Encodable {
        struct ImageRow: Encodable {
            var path: String
            var buildId: String
            /// The files with its build ID, in the order in which they are searched.
            var files: [String]
            var places: Int
            var named: Int
            var withLines: Int
            var changed: Int
        }
        struct Refused: Encodable {
            var path: String
            var error: String
        }
        let schema = "stallctl.symbolicate/1"
        var store: String
        var places: Int
        var named: Int
        var withLines: Int
        var changed: Int
        /// Locations in images without a build ID, which are never symbolicated from a file.
        var withoutBuildId: Int
        var images: [ImageRow]
        var refused: [Refused]

        init(_ outcome: Symbolication, store: String) {
            self.store = store
            places = outcome.sum(\.placeCount)
            named = outcome.sum(\.namedCount)
            withLines = outcome.sum(\.lineCount)
            changed = outcome.sum(\.changedCount)
            withoutBuildId = outcome.withoutBuildID
            images = outcome.images.map { outcome in
                ImageRow(
                    path: outcome.image.path, buildId: outcome.image.buildID?.description ?? "",
                    files: outcome.files.map(\.path), places: outcome.placeCount,
                    named: outcome.namedCount, withLines: outcome.lineCount,
                    changed: outcome.changedCount)
            }
            refused = outcome.refusals.map { Refused(path: $0.path, error: $0.description) }
        }
    }
}
