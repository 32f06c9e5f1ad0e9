// The servers under test: Hummingbird and a plain channel on the singleton group, and a channel on a group that has
// NIO's own metrics delegate.

import Foundation
import Hummingbird
import InMemoryTracing
import Logging
import NIOCore
import NIOPosix
import StallAgent
import StallTracing
import Synchronization

let group = MultiThreadedEventLoopGroup.singleton
let delegate = TickDelegate()
let ownGroup = MultiThreadedEventLoopGroup(numberOfThreads: 1, metricsDelegate: delegate)
let plants = Plants()
/// The app's own tracer, which has every span, with ids as W3C Trace Context has them.
let ownTracer = InMemoryTracer(
    idGenerator: .init(
        nextTraceID: { identifier() + identifier() },
        nextSpanID: { identifier() }))
let tracer = StallTracer(ownTracer)

/// NIO's own measurement: the longest duration of its tasks.
final class TickDelegate: NIOEventLoopMetricsDelegate {
    private let longest = Mutex<Int64>(0)
    func processedTick(info: NIOEventLoopTickInfo) {
        let run = (info.endTime - info.startTime).nanoseconds / 1_000_000
        longest.withLock { $0 = max($0, run) }
    }
    /// The longest tick since the last question, in milliseconds.
    func takeLongest() -> Int64 {
        longest.withLock { value in
            defer { value = 0 }
            return value
        }
    }
}

/// What reports call the loop that runs the calling code.
func currentLoopName() -> String {
    guard let loop = MultiThreadedEventLoopGroup.currentEventLoop else { return "none" }
    for (number, other) in group.makeIterator().enumerated() where other === loop {
        return "http/\(number)"
    }
    return "own/0"
}

/// Blocks for as many milliseconds as it reads.
final class Blocker: ChannelInboundHandler, Sendable {
    typealias InboundIn = ByteBuffer
    let place: Place
    init(_ place: Place) { self.place = place }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let text = String(buffer: unwrapInboundIn(data))
        plants.note(place, loop: currentLoopName()) { stallInChannelRead(Int(text) ?? 100) }
        context.close(promise: nil)
    }
}

func serve(_ place: Place, on group: MultiThreadedEventLoopGroup) throws -> Int {
    let channel = try ServerBootstrap(group: group)
        .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
        .childChannelInitializer { channel in
            channel.eventLoop.makeCompletedFuture {
                try channel.pipeline.syncOperations.addHandler(Blocker(place))
            }
        }
        .bind(host: "127.0.0.1", port: 0).wait()
    return channel.localAddress!.port!
}

struct Labels<Context: RequestContext>: RouterMiddleware {
    let monitor: StallMonitor
    func handle(
        _ request: Request, context: Context,
        next: (Request, Context) async throws -> Response
    ) async throws -> Response {
        let label = "\(request.method) \(context.endpointPath ?? request.uri.path)"
        var response = try await monitor.withTaskActivity(label) {
            try await next(request, context)
        }
        // The body is written when this has returned.
        let body = response.body
        response.body = ResponseBody(contentLength: body.contentLength) { [monitor] writer in
            try await monitor.withTaskActivity(label) { [writer] in try await body.write(writer) }
        }
        return response
    }
}

/// The work of a route, on one thread from begin to end.
private func block(_ milliseconds: Int, _ place: Place, loop: String) {
    tracer.withSpan("block") { _ in
        plants.note(place, loop: loop, request: "GET /block/{ms}") { stallInRoute(milliseconds) }
    }
}

/// - Parameters:
///   - bodyPlace: The place of a block in the body of an answer.
///   - isTraced: The server has Hummingbird's own tracing, instead of labels.
///   - loop: What reports call the thread that runs a route; asked in the route.
func application(
    _ monitor: StallMonitor, port: Int, _ place: Place, _ bodyPlace: Place = .body,
    isTraced: Bool = false, loop: @escaping @Sendable () -> String
) -> some ApplicationProtocol {
    let router = Router()
    if isTraced {
        router.add(middleware: TracingMiddleware())
    } else {
        router.add(middleware: Labels(monitor: monitor))
    }
    router.get("/plain") { _, _ in "hello" }
    router.get("/block/:ms") { _, context in
        let milliseconds = Int(try context.parameters.require("ms")) ?? 100
        if isTraced {
            plants.note(place, loop: loop(), request: "GET /block/{ms}") {
                stallInRoute(milliseconds)
            }
        } else {
            block(milliseconds, place, loop: loop())
        }
        return "blocked"
    }
    router.get("/body/:ms") { _, context in
        let milliseconds = Int(try context.parameters.require("ms")) ?? 100
        return Response(
            status: .ok,
            body: ResponseBody { writer in
                try await writer.write(ByteBuffer(string: "begun"))
                plants.note(bodyPlace, loop: loop(), request: "GET /body/{ms}") {
                    stallInBody(milliseconds)
                }
                try await writer.finish(nil)
            })
    }
    var logger = Logger(label: "server")
    logger.logLevel = .error
    return Application(
        router: router, configuration: .init(address: .hostname("127.0.0.1", port: port)),
        logger: logger)
}

/// Random, in 16 hexadecimal digits.
private func identifier() -> String {
    let digits = String(UInt64.random(in: 1...UInt64.max), radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits
}
