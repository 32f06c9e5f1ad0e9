// `push`: sends what is new of stores to a collector, once or continuously. StallPush decides what an answer means; this
// connects it with stores and reports what came of it.

#if Fleet
internal import ArgumentParser
internal import StallAnalysis
internal import StallArchive
internal import StallIngest
internal import StallModel
internal import StallPush
internal import StallStore

struct Push: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Send what is new of stores to a collector.",
        discussion: """
            The operands are the collector's address and stores or directories (searched
            recursively); without a store, the one that all commands use. The collector
            remembers how far it has each store: a push that was interrupted is continued
            by the next one, and nothing is sent or stored twice. Rows that the collector
            refuses are reported, counted and not sent again.

            With --otlp, each stall is sent as a log record to an OpenTelemetry collector,
            and all operands are stores. The position is kept in a file beside the store,
            or the one of --position.

            Requests are made by the program curl.

            EXAMPLES
              stallctl push https://hub:4319 --token-file /etc/stallwatch/token
              stallctl push https://hub:4319 --watch /var/lib/photos/stalls.sqlite
              stallctl push --otlp http://localhost:4318/v1/logs /srv/stalls
            """)

    @OptionGroup var store: StoreOptions
    @OptionGroup var grouping: GroupingOptions

    @Option(
        help: ArgumentHelp(
            "File with the bearer token, read for each request.", valueName: "path"),
        completion: .file())
    var tokenFile: String?

    @Option(
        help: ArgumentHelp(
            "Certificate authority that signs the collector's certificate, in PEM; instead of the system's.",
            valueName: "path"),
        completion: .file())
    var caFile: String?

    @Option(
        help: ArgumentHelp(
            "Send stalls as OTLP/JSON log records to this address instead.", valueName: "url"))
    var otlp: String?

    @Option(
        help: ArgumentHelp(
            "File with the position of --otlp. Default: STORE-otlp.", valueName: "path"),
        completion: .file())
    var position: String?

    @Flag(help: "Run continuously, sending every --every seconds, until SIGINT or SIGTERM.")
    var watch = false

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Interval for --watch, in seconds.", valueName: "seconds"))
    var every = 60

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "Maximum time to wait for a collector that is not ready, in seconds.",
            valueName: "seconds"))
    var wait = 60

    @Flag(help: "Accept patterns that match no file.")
    var allowUnmatched = false

    @Flag(help: "Write the summary as JSON.")
    var json = false

    @Argument(
        help: ArgumentHelp("The collector's address, then stores.", valueName: "url-and-stores"),
        completion: .file())
    var operands: [String] = []

    private var url: String { otlp ?? operands.first ?? "" }
    private var paths: [String] {
        let paths = otlp == nil ? Array(operands.dropFirst()) : operands
        return paths.isEmpty ? [store.path] : paths
    }

    func validate() throws {
        guard url.hasPrefix("https://") || url.hasPrefix("http://") else {
            throw ValidationError(
                url.isEmpty
                    ? "the collector's address is missing: stallctl push https://hub:4319"
                    : "'\(url)' is no address: expected https://HOST:PORT or http://HOST:PORT.")
        }
        guard !url.utf8.contains(where: { $0 <= 0x20 || $0 >= 0x7f }) else {
            throw ValidationError("'\(url)' has characters that no address has.")
        }
        if position != nil, otlp == nil {
            throw ValidationError("--position requires --otlp.")
        }
        if store.store != nil, operands.count > (otlp == nil ? 1 : 0) {
            throw ValidationError("--store cannot be used together with operands that are stores.")
        }
        try expectOneOrMore(every, "--every")
        guard wait >= 0 else { throw ValidationError("--wait must be 0 or more; it was \(wait).") }
    }

    func run() throws {
        let stop = StopSignal()
        var target = PushTarget(
            url: url, tokenFile: tokenFile, authorityFile: caFile)
        if otlp == nil { while target.url.hasSuffix("/") { target.url.removeLast() } }
        do throws(PushProblem) { _ = try target.token() } catch { throw error }
        var (reported, told) = (Set<String>(), Set<UniqueID>())
        var hasFailed = false
        // One time for all stores: a collector that does not answer for one does not for the next.
        var patience = PushPatience(stop, seconds: watch ? nil : Double(wait))
        repeat {
            let found = StoreFiles(paths, allowsUnmatched: allowUnmatched)
            var stores = found.skipped.map {
                PushedStore(path: $0.path ?? "", error: $0.description)
            }
            for path in found.stores where !stop.isRequested {
                if let failure = patience.failure {
                    let error = "\(path): not sent: \(target.url) \(failure)"
                    stores.append(PushedStore(path: path, error: error))
                } else {
                    stores.append(push(path, to: target, &patience, told: &told))
                }
            }
            let lines = PushView.errorLines(of: stores, to: target.url)
            // In --watch mode each error is reported once, until it is over.
            for line in lines where !reported.contains(line) { say("stallctl: " + line) }
            reported = watch ? Set(lines) : []
            hasFailed = !lines.isEmpty
            let hasSent = stores.contains { $0.results.contains { $0.lineCount > 0 } }
            if !watch || hasSent { try tell(stores, target.url) }
            if watch { stop.sleep(seconds: every) }
        } while watch && !stop.isRequested
        if hasFailed && !watch { throw ExitCode.failure }
    }

    /// - Parameter told: Stalls of processes that are gone, which need not be said again.
    private func push(
        _ path: String, to target: PushTarget, _ patience: inout PushPatience,
        told: inout Set<UniqueID>
    ) -> PushedStore {
        var pushed = PushedStore(path: path)
        do {
            let reports = try UnfinishedNames.open(path: path)
            for source in try reports.changeSources() {
                if patience.stop.isRequested { break }
                if otlp != nil {
                    var push = RecordPush(
                        target: target, positionPath: position ?? path + "-otlp",
                        grouper: DefaultGrouper(rules: try grouping.rules(toRead: reports)),
                        patience: patience)
                    defer { patience = push.patience }
                    pushed.results.append(try push.push(reports, source))
                } else {
                    var (spool, session) = (
                        StoreSpool(reports, source, told: told), PushSession()
                    )
                    var line = CollectorLine(target: target, patience: patience)
                    defer { patience = line.patience }
                    let result = try session.push(&spool, over: &line)
                    if result.failure == nil { told = spool.told }
                    pushed.results.append(result)
                }
                // The next source would be refused for the same reason.
                if pushed.results.last?.failure != nil { break }
            }
        } catch {
            pushed.error = "\(error)"
        }
        return pushed
    }

    private func tell(_ stores: [PushedStore], _ url: String) throws {
        if json {
            try Output.write(json: [PushView.Row(stores, to: url)])
        } else {
            try Output.write(sentences: [PushView.sentence(of: stores, to: url)])
        }
    }
}
#endif
