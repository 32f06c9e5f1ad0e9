// The fields in the head of a push, checked before any of its body is read.

internal import StallModel
internal import StallQuery

/// The fields of a push.
struct PushHead: Equatable {
    /// The numbers of the store that the lines are of.
    var from: Int64
    var through: Int64
    /// The SHA-256 of the body as it was sent.
    var digest: [UInt8]
    var isCompressed: Bool
    /// Nil where the sender does not say.
    var length: Int?

    /// The version of the lines that is understood.
    static let schema = "1"

    /// - Throws: The answer that refuses it.
    init(_ request: CollectorRequest, limits: CollectorLimits) throws(CollectorRefusal) {
        let type = request.fields["content-type"]?.prefix { $0 != ";" }.lowercased()
        guard type?.filter({ $0 != " " }) == "application/x-ndjson" else {
            throw .init(415, "Content-Type is to be application/x-ndjson")
        }
        switch request.fields["content-encoding"]?.lowercased() {
        case "gzip": isCompressed = true
        case nil, "identity": isCompressed = false
        default: throw .init(415, "Content-Encoding is to be gzip or identity")
        }
        guard request.fields["stallwatch-schema"] == Self.schema else {
            throw .init(415, "Stallwatch-Schema is to be \(Self.schema)")
        }
        guard let from = Self.number(request, "stallwatch-from"),
            let through = Self.number(request, "stallwatch-through"), from >= 1, through >= from - 1
        else {
            throw .init(
                400,
                "Stallwatch-From and Stallwatch-Through are to be whole numbers, the first 1 or more and the second not below the first less one"
            )
        }
        (self.from, self.through) = (from, through)
        guard let digest = Self.digest(request.fields["content-digest"]) else {
            throw .init(
                400, "Content-Digest is to be sha-256=:BASE64: of the body as it is sent (RFC 9530)"
            )
        }
        self.digest = digest
        length = request.fields["content-length"].flatMap { Int($0) }
        if let length, length > limits.bodyBytes { throw .tooLarge(limits) }
    }

    /// Decimal digits, at most as many as the largest number has.
    private static func number(_ request: CollectorRequest, _ name: String) -> Int64? {
        guard let text = request.fields[name], text.utf8.count <= 19,
            text.utf8.allSatisfy({ (0x30...0x39).contains($0) })
        else { return nil }
        return Int64(text)
    }

    /// The SHA-256 among the digests, which may be several.
    ///
    /// **Source:** RFC 9530, section 2; RFC 8941, section 3.3.5.
    private static func digest(_ field: String?) -> [UInt8]? {
        for item in (field ?? "").split(separator: ",") {
            let item = item.drop { $0 == " " }
            guard item.hasPrefix("sha-256=:"), item.hasSuffix(":") else { continue }
            let text = item.dropFirst("sha-256=:".count).dropLast()
            guard let bytes = [UInt8](base64: text), bytes.count == 32 else { return nil }
            return bytes
        }
        return nil
    }
}

/// Why a request is refused: the answer's status and reason.
struct CollectorRefusal: Error, Equatable {
    var status: Int
    var reason: String
    /// The lines that it is about, and how many there are.
    var faults: [LineFault] = []
    var faultCount = 0
    var retryAfter: Int?

    init(_ status: Int, _ reason: String, retryAfter: Int? = nil) {
        (self.status, self.reason, self.retryAfter) = (status, reason, retryAfter)
    }

    static func tooLarge(_ limits: CollectorLimits) -> CollectorRefusal {
        .init(
            413,
            "a batch has at most \(limits.bodyBytes >> 20) MB as sent and \(limits.inflatedBytes >> 20) MB unpacked: send half of it"
        )
    }

    var answer: CollectorAnswer {
        guard faults.isEmpty else {
            return CollectorAnswer(status, faults: faults, count: faultCount)
        }
        var answer = CollectorAnswer(status, error: reason, retryAfter: retryAfter)
        if status == 401 {
            // A field each: Chromium reads a list of challenges as one of a scheme that it does not know.
            for challenge in ["Basic realm=\"stallwatch\"", "Bearer"] {
                answer.fields.append(("www-authenticate", challenge))
            }
        }
        return answer
    }
}
