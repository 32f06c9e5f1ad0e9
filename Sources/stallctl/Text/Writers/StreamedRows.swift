// Rows written while they are read from a store.

internal import StallFormats

/// One JSON array, an object a line.
final class JSONArray {
    private var output: Output
    private var separator = "[\n"

    init(_ output: consuming Output) { self.output = output }

    func write(_ object: some Encodable) throws {
        try output.write(separator + JSONLines.line(object).dropLast())
        separator = ",\n"
    }

    func finish() throws {
        try output.write(separator == "[\n" ? "[]\n" : "\n]\n")
        try output.finish()
    }
}

/// A CSV header and rows; on a terminal, with control characters escaped.
final class CSVRows {
    private var output: Output
    private let writer: CSVWriter

    init(_ header: [String], isRaw: Bool, to path: String?) throws {
        output = try Output.open(path)
        writer = CSVWriter(isRaw: isRaw, visible: output.isTerminal ? { $0.printable } : nil)
        try output.write(writer.row(header.map { .plain($0) }))
    }

    func write(_ fields: [CSVWriter.Field]) throws { try output.write(writer.row(fields)) }
    func finish() throws { try output.finish() }
}
