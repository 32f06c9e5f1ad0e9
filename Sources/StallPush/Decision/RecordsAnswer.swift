// The answer of a receiver of log records. Anything may answer 200: a login page, a proxy, a receiver of gRPC.

internal import StallHTTP

/// The answer of a receiver that took records: nothing, an empty object, or an `ExportLogsServiceResponse` in JSON.
///
/// **Source:** OTLP specification 1.6, "OTLP/HTTP response". Fields that are not known are ignored.
struct RecordsAnswer: Hashable {
    var refusedCount = 0
    var message = ""

    /// Nil for an answer that does not say that anything was taken.
    init?(_ answer: HTTPAnswer) {
        let type = (answer.fields["content-type"] ?? "").lowercased()
            .prefix { $0 != ";" && $0 != " " }
        guard answer.fields["grpc-status"] == nil, !type.hasPrefix("application/grpc") else {
            return nil
        }
        // A page without a text is a page.
        if answer.body.isEmpty {
            if type.hasPrefix("text/html") { return nil }
            return
        }
        guard let object = answer.object([String: Ignored].self) else { return nil }
        if object.isEmpty { return }
        guard type == "application/json", object.keys.contains(where: Response.names.contains),
            let response = answer.object(Response.self)
        else { return nil }
        let partial = response.partialSuccess ?? response.partial_success
        let count = (partial?.rejectedLogRecords ?? partial?.rejected_log_records)?.number ?? 0
        guard count >= 0 else { return nil }
        refusedCount = count
        message = partial?.errorMessage ?? partial?.error_message ?? ""
    }

    /// Any value.
    private struct Ignored: Decodable {
        init(from decoder: any Decoder) {}
    }

    /// In both spellings that the JSON mapping of protobuf reads.
    private struct Response: Decodable {
        struct Partial: Decodable {
            var rejectedLogRecords: Count?
            var rejected_log_records: Count?
            var errorMessage: String?
            var error_message: String?
        }
        var partialSuccess: Partial?
        var partial_success: Partial?

        static let names: Set = ["partialSuccess", "partial_success"]
    }

    /// A 64-bit number: a text in JSON, but not from everyone.
    private struct Count: Decodable {
        var number: Int

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            if let number = try? container.decode(Int.self) {
                self.number = number
                return
            }
            guard let number = Int(try container.decode(String.self)) else {
                throw DecodingError.dataCorruptedError(in: container, debugDescription: "no number")
            }
            self.number = number
        }
    }
}
