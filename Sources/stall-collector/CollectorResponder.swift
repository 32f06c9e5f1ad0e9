// Between Hummingbird and the Collector: heads and bodies become values, and a body that takes too long ends.

#if Collector
internal import HTTPTypes
internal import Hummingbird
internal import HummingbirdCore
internal import NIOCore
internal import StallCollector

/// A request's connection.
struct CollectorContext: RequestContext {
    var coreContext: CoreRequestContextStorage
    let channel: any Channel

    init(source: ApplicationRequestContextSource) {
        coreContext = .init(source: source)
        channel = source.channel
    }
}

struct CollectorResponder<Storage: PushStorage>: HTTPResponder {
    let collector: Collector<Storage>
    let limits: CollectorLimits

    @Sendable func respond(
        to request: Request, context: CollectorContext
    ) async throws -> Response {
        var fields: [String: String] = [:]
        for field in request.headers {
            let name = field.name.canonicalName
            fields[name] = fields[name].map { $0 + ", " + field.value } ?? field.value
        }
        let head = CollectorRequest(
            method: request.method.rawValue, target: request.head.path ?? "", fields: fields,
            peer: peer(of: context.channel))
        let reading = BodyReading()
        let answer = await collector.respond(to: head) { limit throws(CollectorBodyError) in
            try await reading.read(request.body, limit: limit, seconds: limits.requestSeconds)
        }
        // A body that was not read to its end would be read on and on: what is left of the connection gets a moment for the
        // answer to arrive.
        if await !reading.isAtEnd, request.method == .post {
            context.channel.eventLoop.scheduleTask(in: .seconds(2)) { [channel = context.channel] in
                channel.close(promise: nil)
            }
        }
        var response = Response(
            status: .init(code: answer.status),
            body: .init(byteBuffer: ByteBuffer(bytes: answer.body)))
        for (name, value) in answer.fields {
            if let name = HTTPField.Name(name) {
                response.headers.append(HTTPField(name: name, value: value))
            }
        }
        return response
    }

    /// The address of the peer; of a stream, that of its connection.
    private func peer(of channel: any Channel) -> String {
        (channel.remoteAddress ?? channel.parent?.remoteAddress)?.ipAddress ?? "unknown"
    }
}

/// Reads one body.
private actor BodyReading {
    private(set) var isAtEnd = false

    /// The whole body. Parts that trickle in do not extend its time.
    func read(
        _ body: RequestBody, limit: Int, seconds: Int
    ) async throws(CollectorBodyError) -> [UInt8] {
        let deadline = NIODeadline.now() + .seconds(Int64(seconds))
        var bytes: [UInt8] = []
        do {
            for try await part in body {
                guard bytes.count + part.readableBytes <= limit else {
                    throw CollectorBodyError.tooLarge
                }
                guard NIODeadline.now() < deadline else { throw CollectorBodyError.ended }
                bytes.append(contentsOf: part.readableBytesView)
            }
        } catch let error as CollectorBodyError {
            throw error
        } catch {
            throw .ended
        }
        isAtEnd = true
        return bytes
    }
}
#endif
