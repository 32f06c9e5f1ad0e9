// The request's position in distributed tracing, read from the facts of a report that name it.

/// Ids by W3C Trace Context, in hexadecimal.
package struct TraceContext: Equatable, Sendable {
    /// 32 digits.
    package var trace: String
    /// 16 digits; nil if unknown.
    package var span: String?

    /// - Parameters:
    ///   - trace: An id of 16 bytes, or the 8 of older formats.
    ///   - span: Ignored where it is no id.
    package init?(trace: some StringProtocol, span: (some StringProtocol)?) {
        guard let trace = Self.identifier(trace, digits: 32) else { return nil }
        self.trace = trace
        self.span = span.flatMap { Self.identifier($0, digits: 16) }
    }

    /// Shorter ones are filled with zeros. All zeros are no id.
    private static func identifier(_ text: some StringProtocol, digits: Int) -> String? {
        let bytes = text.utf8
        guard (digits / 2...digits).contains(bytes.count), bytes.contains(where: { $0 != 0x30 }),
            bytes.allSatisfy({ 0x30...0x39 ~= $0 || 0x61...0x66 ~= $0 || 0x41...0x46 ~= $0 })
        else { return nil }
        return String(repeating: "0", count: digits - bytes.count) + text.lowercased()
    }

    /// Reads the value of a fact: `GET /orders, trace TRACE, span SPAN, for 0.4 s`. The name is the app's, and may have
    /// commas of its own.
    init?(evidence: String) {
        let parts = evidence.split(separator: ", ")
        guard let index = parts.lastIndex(where: { $0.hasPrefix("trace ") }) else { return nil }
        let next = index + 1 < parts.count ? parts[index + 1] : ""
        self.init(
            trace: parts[index].dropFirst(6),
            span: next.hasPrefix("span ") ? next.dropFirst(5) : nil)
    }
}

extension StallCause {
    /// The trace of the request that the stalled task served: of its last span, else of its label.
    package var traceContext: TraceContext? {
        let own = [EvidenceName.span, .request].lazy.map(\.rawValue)
        return own.compactMap { name in
            evidence.lazy.filter { $0.name == name }.compactMap { TraceContext(evidence: $0.value) }
                .last
        }.first
    }
}
