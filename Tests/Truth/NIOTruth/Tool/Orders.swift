// A gRPC 2 service with one unary method, without generated code, and a client that calls it.

import Foundation
import NIOPosix
import StallAgent

#if GRPC
import GRPCCore
import GRPCNIOTransportHTTP2Posix
#endif

/// A service that blocks for as many milliseconds as a request says.
struct Orders {
    let monitor: StallMonitor
    let place: Place
    let loop: @Sendable () -> String

    private static let method = "shop.Orders/Get"

    fileprivate func answer(_ message: [UInt8]) async {
        await monitor.withTaskActivity(Self.method) {
            plants.note(place, loop: loop(), request: Self.method) {
                stallInUnary(Int(String(decoding: message, as: UTF8.self)) ?? 100)
            }
        }
    }
}

#if GRPC
let hasGRPC = true

private let getOrder = MethodDescriptor(fullyQualifiedService: "shop.Orders", method: "Get")

private struct PlainBytes: MessageSerializer, MessageDeserializer {
    func serialize<Bytes: GRPCContiguousBytes>(_ message: [UInt8]) throws -> Bytes {
        Bytes(message)
    }
    func deserialize<Bytes: GRPCContiguousBytes>(_ bytes: Bytes) throws -> [UInt8] {
        bytes.withUnsafeBytes { Array($0) }
    }
}

extension Orders: RegistrableRPCService {
    func registerMethods<Transport: ServerTransport>(with router: inout RPCRouter<Transport>) {
        router.registerHandler(
            forMethod: getOrder, deserializer: PlainBytes(), serializer: PlainBytes()
        ) { request, _ in
            let request = try await ServerRequest(stream: request)
            await answer(request.message)
            return StreamingServerResponse(single: ServerResponse(message: request.message))
        }
    }
}

func serveOrders(_ orders: Orders, port: Int) async throws {
    let server = GRPCServer(
        transport: .http2NIOPosix(
            address: .ipv4(host: "127.0.0.1", port: port), transportSecurity: .plaintext),
        services: [orders])
    try await server.serve()
}

/// The client's own loop: it is not to be blocked by what it asks for.
private let clientGroup = MultiThreadedEventLoopGroup(numberOfThreads: 1)

/// Calls the method and waits for its answer, on a thread that is no task's.
func callOrders(_ milliseconds: Int, port: Int) {
    let isDone = DispatchSemaphore(value: 0)
    Task.detached {
        do {
            try await withGRPCClient(
                transport: .http2NIOPosix(
                    target: .ipv4(address: "127.0.0.1", port: port), transportSecurity: .plaintext,
                    eventLoopGroup: clientGroup)
            ) { client in
                _ = try await client.unary(
                    request: ClientRequest(message: Array("\(milliseconds)".utf8)),
                    descriptor: getOrder, serializer: PlainBytes(), deserializer: PlainBytes(),
                    options: .defaults
                ) { response in try response.message }
            }
        } catch { print("gRPC: \(error)") }
        isDone.signal()
    }
    isDone.wait()
}
#else
let hasGRPC = false
func serveOrders(_ orders: Orders, port: Int) async throws {}
func callOrders(_ milliseconds: Int, port: Int) {}
#endif
