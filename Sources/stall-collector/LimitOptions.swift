// The limits that an operator may change.

#if Collector
internal import ArgumentParser
internal import StallCollector

struct LimitOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp("Connections that are open at the same time.", valueName: "count"))
    var connections = 512

    @Option(
        help: ArgumentHelp(
            "Requests of one token per second; twice as many at once after a pause.",
            valueName: "count"))
    var rate = 200

    @Option(
        help: ArgumentHelp("The largest body of a push as sent, in megabytes.", valueName: "MB"))
    var bodyLimit = 16

    @Option(
        help: ArgumentHelp("The largest body of a push unpacked, in megabytes.", valueName: "MB"))
    var unpackedLimit = 64

    @Option(
        help: ArgumentHelp(
            "Memory for bodies that are received or not yet committed, in megabytes.",
            valueName: "MB"))
    var memoryLimit = 256

    @Option(
        help: ArgumentHelp(
            "The time that a sender may take for a request, and be idle between two, in seconds.",
            valueName: "seconds"))
    var requestTime = 60

    func validate() throws {
        for (name, value, limit) in [
            ("--connections", connections, 100_000), ("--rate", rate, 1_000_000),
            ("--body-limit", bodyLimit, 1024), ("--unpacked-limit", unpackedLimit, 4096),
            ("--memory-limit", memoryLimit, 1 << 20), ("--request-time", requestTime, 3600),
        ] {
            guard (1...limit).contains(value) else {
                throw ValidationError("\(name) must be 1 to \(limit); it was \(value).")
            }
        }
    }

    var limits: CollectorLimits {
        var limits = CollectorLimits()
        limits.connections = connections
        limits.requestRate = Double(rate)
        limits.requestBurst = Double(rate) * 2
        limits.bodyBytes = bodyLimit << 20
        limits.inflatedBytes = unpackedLimit << 20
        limits.heldBytes = memoryLimit << 20
        limits.requestSeconds = requestTime
        return limits
    }
}
#endif
