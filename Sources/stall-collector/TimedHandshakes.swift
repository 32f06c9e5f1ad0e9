// TLS with HTTP/2 or HTTP/1.1, where a connection that does not complete its handshake is closed: it would count against the
// limit of connections for as long as its peer likes.

#if Collector
internal import Hummingbird
internal import HummingbirdCore
internal import HummingbirdHTTP2
internal import Logging
internal import NIOCore
internal import NIOSSL
internal import NIOTLS

extension HTTPServerBuilder {
    /// HTTP/2 where the client can, else HTTP/1.1, both on TLS.
    static func timingHandshakes(
        _ tls: TLSConfiguration, _ configuration: HTTP2ChannelConfiguration
    ) -> HTTPServerBuilder {
        HTTPServerBuilder { responder in
            TimedHandshakes(
                base: try HTTP2UpgradeChannel(
                    tlsConfiguration: tls, configuration: configuration, responder: responder))
        }
    }
}

extension TLSConfiguration {
    /// - Throws: The error of the files.
    static func serving(certificate: String, key: String) throws -> TLSConfiguration {
        var configuration = TLSConfiguration.makeServerConfiguration(
            certificateChain: try NIOSSLCertificate.fromPEMFile(certificate).map {
                .certificate($0)
            }, privateKey: .privateKey(try NIOSSLPrivateKey(file: key, format: .pem)))
        configuration.minimumTLSVersion = .tlsv12
        // Fails here rather than at the first connection.
        configuration.applicationProtocols = ["h2", "http/1.1"]
        _ = try NIOSSLContext(configuration: configuration)
        return configuration
    }
}

private struct TimedHandshakes: ServerChildChannel {
    typealias Value = HTTP2UpgradeChannel.Value
    let base: HTTP2UpgradeChannel

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
        base.setup(channel: channel, logger: logger).flatMapThrowing { value in
            try channel.pipeline.syncOperations.addHandler(
                HandshakeTimer(),
                position: .after(
                    try channel.pipeline.syncOperations.handler(type: NIOSSLServerHandler.self)))
            return value
        }
    }

    func handle(value: Value, logger: Logger) async {
        await base.handle(value: value, logger: logger)
    }
}

private final class HandshakeTimer: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    private var end: Scheduled<Void>?

    func handlerAdded(context: ChannelHandlerContext) {
        let channel = context.channel
        end = context.eventLoop.scheduleTask(in: .seconds(15)) { channel.close(promise: nil) }
    }

    func handlerRemoved(context: ChannelHandlerContext) { end?.cancel() }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .handshakeCompleted = event as? TLSUserEvent { end?.cancel() }
        context.fireUserInboundEventTriggered(event)
    }
}
#endif
