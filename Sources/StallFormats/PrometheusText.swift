// Prometheus' text format, for node_exporter's textfile collector: written, and read back by counters that continue.
//
// **Source:** https://prometheus.io/docs/instrumenting/exposition_formats/, "Text-based format".

/// Families of samples, as lines.
package struct PrometheusText {
    package enum Kind: String {
        case counter, gauge, histogram
    }

    package private(set) var lines: [String] = []

    package init() {}

    /// Begins a family; its samples follow.
    package mutating func family(_ name: String, _ kind: Kind, _ help: String) {
        lines.append("# HELP \(name) \(help)")
        lines.append("# TYPE \(name) \(kind.rawValue)")
    }

    package mutating func sample(_ series: String, _ value: some Numeric) {
        lines.append("\(series) \(value)")
    }

    /// `name{label="value"}`, which names one series of a family.
    package static func series(_ name: String, _ labels: KeyValuePairs<String, String>) -> String {
        let pairs = labels.map { label, value in
            // By scalars: a line end may be part of a larger character.
            var escaped = String.UnicodeScalarView()
            for scalar in value.unicodeScalars {
                switch scalar {
                case "\\", "\"": escaped += ["\\", scalar]
                case "\n": escaped += ["\\", "n"]
                default: escaped.append(scalar)
                }
            }
            return "\(label)=\"\(String(escaped))\""
        }
        return "\(name){\(pairs.joined(separator: ","))}"
    }

    /// The samples of a text, each with its series.
    package static func samples(in text: String) -> [(series: Substring, value: Substring)] {
        text.split(separator: "\n").compactMap { line in
            guard !line.hasPrefix("#"), let space = line.lastIndex(of: " ") else { return nil }
            return (line[..<space], line[line.index(after: space)...])
        }
    }
}
