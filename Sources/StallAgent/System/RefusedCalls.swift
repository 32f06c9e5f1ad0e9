// System calls that a filter of the app's refuses: said at the start, not by what reports lack in production.

internal import CLinux
internal import Logging

/// Makes once what only later phases make, and logs what is refused, with what is missing without it.
func logRefusedCalls(to logger: Logger) {
    var refused = [stall_refused_call](repeating: stall_refused_call(), count: 16)
    let count = stall_calls_probe(&refused, refused.count)
    for call in refused.prefix(count) {
        guard let name = call.name, let effect = call.effect else { continue }
        logger.warning(
            """
            the system call \(String(cString: name)) is refused (errno \(call.error)): \
            \(String(cString: effect))
            """)
    }
}
