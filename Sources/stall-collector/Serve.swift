// `serve`: listens, hands requests to the Collector, and stops on a signal.

#if Collector
internal import ArgumentParser
internal import Foundation
internal import Glibc
internal import Hummingbird
internal import HummingbirdCore
internal import HummingbirdHTTP2
internal import Logging
internal import NIOCore
internal import NIOPosix
internal import StallAgent
internal import StallAgentNIO
internal import StallCollector
internal import StallModel

struct Serve: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Listen for pushes and questions.",
        discussion: """
            A batch is acknowledged only after it is committed. SIGTERM ends the program
            after the requests that are under way.

            EXAMPLES
              stall-collector serve --store central.sqlite --tokens tokens
              stall-collector serve --store central.sqlite --tokens tokens --address 0.0.0.0 \\
                --certificate chain.pem --key key.pem
            """)

    @Option(
        help: ArgumentHelp(
            "The central store, created if missing; or clickhouse://user@host:port/db?cluster=name.",
            valueName: "path"))
    var store: String

    @Option(
        help: ArgumentHelp(
            "The file of tokens. It is read again when it changes.", valueName: "path"))
    var tokens: String

    @Option(help: ArgumentHelp("The address to listen on.", valueName: "address"))
    var address = "127.0.0.1"

    @Option(help: ArgumentHelp("The port to listen on; 0 for any free one.", valueName: "port"))
    var port = 4319

    @Option(
        help: ArgumentHelp(
            "TLS: the certificate and those that sign it, as PEM. HTTP/2 needs TLS.",
            valueName: "path"))
    var certificate: String?

    @Option(help: ArgumentHelp("TLS: the certificate's private key, as PEM.", valueName: "path"))
    var key: String?

    @Flag(
        help: "Serve without TLS on an address that other machines reach. Tokens are sent in clear."
    )
    var insecure = false

    @Option(
        help: ArgumentHelp(
            "The stallctl that answers readers. Default: the one beside this program, else /usr/bin/stallctl.",
            valueName: "path"))
    var stallctl: String?

    @OptionGroup var limitOptions: LimitOptions

    @Option(
        help: ArgumentHelp(
            "Append a line of JSON for each request to this file; - for standard error. It may be moved at any time.",
            valueName: "path"))
    var accessLog: String?

    @Option(
        help: ArgumentHelp(
            "The store of this program's own stalls. Default: stall-collector.sqlite beside the central store.",
            valueName: "path"))
    var ownStore: String?

    func validate() throws {
        guard (0...65_535).contains(port) else {
            throw ValidationError("--port must be 0 to 65535; it was \(port).")
        }
        guard (certificate == nil) == (key == nil) else {
            throw ValidationError("--certificate and --key are given together.")
        }
        let isLocal = address == "localhost" || address == "::1" || address.hasPrefix("127.")
        guard certificate != nil || insecure || isLocal else {
            throw ValidationError(
                "\(address) is reached by other machines: give --certificate and --key, or --insecure behind a proxy that speaks TLS."
            )
        }
    }

    func run() async throws {
        // A full disk or a limit on the file then fails a write, which is reported to the sender.
        signal(SIGXFSZ, SIG_IGN)
        signal(SIGPIPE, SIG_IGN)
        let tokenFile: TokenFile
        do { tokenFile = try TokenFile(tokens) } catch {
            say("\(tokens): \(error)")
            throw ExitCode.failure
        }
        if ClusterStorage.isAddress(store) {
            try await serve(
                from: opened { try ClusterStorage(store, seconds: Self.seconds) }, tokenFile)
        } else {
            try await serve(from: opened { try SQLiteStorage(store) }, tokenFile)
        }
    }

    private func opened<Storage>(_ open: () throws -> Storage) throws -> Storage {
        do { return try open() } catch {
            say("\(error)")
            throw ExitCode.failure
        }
    }

    private func serve(from storage: some PushStorage, _ tokenFile: TokenFile) async throws {
        let accessLog: AccessLog?
        do { accessLog = try self.accessLog.map { try AccessLog($0) } } catch {
            say("--access-log \(error)")
            throw ExitCode.failure
        }
        let collector = Collector(
            storage: storage, tokens: tokenFile, reader: reader(), accessLog: accessLog,
            limits: limitOptions.limits, seconds: Self.seconds, log: Self.log)
        let monitor = watch()
        let app = Application(
            responder: CollectorResponder(collector: collector, limits: limitOptions.limits),
            server: try server(),
            configuration: .init(
                address: .hostname(address, port: port), serverName: "stall-collector",
                availableConnectionsDelegate: .maximum(
                    limitOptions.limits.connections, logger: Self.logger)),
            onServerRunning: { channel in
                let port = channel.localAddress?.port ?? 0
                Self.log.add(
                    "listening on \(certificate == nil ? "http" : "https")://\(address):\(port)")
            }, logger: Self.logger)
        do {
            try await app.runService()
        } catch {
            Self.log.add("\(error)")
            collector.stop()
            Self.log.stop()
            throw ExitCode.failure
        }
        collector.stop()
        monitor?.stop()
        Self.log.add("stopped")
        Self.log.stop()
    }

    /// Answers readers; nil where there is no stallctl.
    private func reader() -> ToolReader? {
        let own = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        let paths =
            stallctl.map { [$0] }
            ?? [own?.siblingPath("stallctl") ?? "", "/usr/bin/stallctl"]
        guard let path = paths.first(where: FileManager.default.isExecutableFile(atPath:)) else {
            say("there is no stallctl, so that readers are not answered: give --stallctl")
            return nil
        }
        return ToolReader(tool: path, store: store)
    }

    private func server() throws -> HTTPServerBuilder {
        let limits = limitOptions.limits
        let http1 = HTTP1Channel.Configuration(
            idleTimeout: .seconds(Int64(limits.requestSeconds)),
            httpDecoderConfiguration: .init(
                maxHeaderFieldSize: 8192, maxHeaderListSize: 16_384, maxHeaderFieldCount: 64))
        guard let certificate, let key else { return .http1(configuration: http1) }
        let idle = Duration.seconds(limits.requestSeconds)
        do {
            return .timingHandshakes(
                try .serving(certificate: certificate, key: key),
                .init(idleTimeout: idle, gracefulCloseTimeout: idle, streamConfiguration: http1))
        } catch {
            say("\(certificate), \(key): \(error)")
            throw ExitCode.failure
        }
    }

    /// Watches the loops that serve, with the agent that the collector collects from others.
    private func watch() -> StallMonitor? {
        // A cluster has no directory for it.
        let central = ClusterStorage.isAddress(store) ? "" : store
        let path = ownStore ?? central.siblingPath("stall-collector.sqlite")
        do {
            let monitor = try StallMonitor.start(
                .init(app: "stall-collector", version: stallwatchVersion, store: path))
            monitor.watch(
                MultiThreadedEventLoopGroup.singleton, as: "http", threshold: .milliseconds(50))
            return monitor
        } catch {
            say("is not watched itself: \(error)")
            return nil
        }
    }

    /// No one may be reading standard error: neither a request nor the end waits for it.
    private static let log = LineQueue("stall-log") {
        say($0)
        return true
    }

    private static let logger: Logger = {
        var logger = Logger(label: "stall-collector") { _ in QueuedLog(queue: log) }
        logger.logLevel = .warning
        return logger
    }()

    @Sendable private static func seconds() -> Double {
        Double(NIODeadline.now().uptimeNanoseconds) / 1e9
    }
}

/// Takes what the server logs on its event loops, which do not wait for standard error.
private struct QueuedLog: LogHandler {
    let queue: LineQueue
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.warning

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let all = metadata.merging(event.metadata ?? [:]) { _, new in new }
        let error = event.error.map { " error=\($0)" } ?? ""
        let text = all.sorted { $0.key < $1.key }.map { " \($0.key)=\($0.value)" }.joined()
        queue.add("\(event.level): \(event.message)\(text)\(error)")
    }
}

extension String {
    /// The path of another file in this one's folder.
    fileprivate func siblingPath(_ name: String) -> String {
        guard let slash = lastIndex(of: "/") else { return name }
        return self[...slash] + name
    }
}
#endif
