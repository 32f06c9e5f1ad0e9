// The result of `symbolicate` as text and JSON.

internal import StallModel
internal import StallSymbolFiles
internal import StallSymbols

extension SymbolicationResult {
    /// A table of the images, and a summary.
    func lines(store: String, _ terminal: Terminal) -> [String] {
        var table = Table(
            columns: [
                .init("IMAGE"), .init("BUILD ID", spare: 4), .init("PLACES", .trailing, spare: 2),
                .init("NAMED", .trailing, spare: 1), .init("LINES", .trailing, spare: 3),
                .init("CHANGED", .trailing), .init("FROM"),
            ], othersFirst: 10)
        table.rows = images.map { image in
            [
                .init(image.image.name),
                .init(String(image.image.buildID?.description.prefix(12) ?? "")),
                .init("\(image.locationCount)"), .init("\(image.namedCount)"),
                .init("\(image.lineCount)"), .init("\(image.changedCount)"),
                .init(image.source, style: image.files.isEmpty ? .faint : nil),
            ]
        }
        let found = images.count { !$0.files.isEmpty }
        var sentence =
            "\(store.printable): \(counted(sum(\.locationCount), "location")) in "
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
}

extension SymbolicationResult.ImageResult {
    /// The file that provided the names, or what is missing.
    fileprivate var source: String {
        guard !files.isEmpty else { return "no file has this build ID" }
        let useful = files.first(where: \.hasLines) ?? files.first(where: \.hasSymbols) ?? files[0]
        if useful.hasLines { return useful.path }
        if files.contains(where: \.isCompressed) {
            return useful.path + " (the line table is compressed and could not be read)"
        }
        return useful.hasSymbols ? useful.path : useful.path + " (stripped)"
    }
}

/// The result as JSON.
struct SymbolicationRow: Encodable {
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

    init(_ result: SymbolicationResult, store: String) {
        self.store = store
        places = result.sum(\.locationCount)
        named = result.sum(\.namedCount)
        withLines = result.sum(\.lineCount)
        changed = result.sum(\.changedCount)
        withoutBuildId = result.withoutBuildID
        images = result.images.map { image in
            ImageRow(
                path: image.image.path, buildId: image.image.buildID?.description ?? "",
                files: image.files.map(\.path), places: image.locationCount,
                named: image.namedCount, withLines: image.lineCount,
                changed: image.changedCount)
        }
        refused = result.refusals.map { Refused(path: $0.path, error: $0.description) }
    }
}
