// Rows written while they are read from a store.

internal import StallFormats

/// One JSON array, one object per line.
final class JSONArray {
    private var output: Output
    private var separator = "[\n"

    init(_ output: consuming Output) { self.output = output }

    /// - Parameter line: An object with its line end.
    func write(_ line: [UInt8]) throws {
        try output.write(separator + String(decoding: line.dropLast(), as: UTF8.self))
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
        try write(header.map { .plain($0) })
    }

    func write(_ fields: [CSVWriter.Field]) throws {
        try write { writer, row in writer.append(fields, to: &row) }
    }

    /// Writes the row whose cells `body` appends.
    func write(_ body: (CSVWriter, inout [UInt8]) throws -> Void) throws {
        try output.write { bytes in
            try body(writer, &bytes)
            writer.endRow(&bytes)
        }
    }

    func finish() throws { try output.finish() }
}
