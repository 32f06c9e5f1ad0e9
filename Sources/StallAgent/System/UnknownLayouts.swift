// Libraries that are not built as the agent knows them: said at the start, not by what reports lack in production.

internal import CLinux
internal import Logging
internal import Synchronization

/// Tries what the agent knows of the inside of other libraries, and logs what is not as expected, with what is switched off.
func logUnknownLayouts(to logger: Logger) {
    var unknown = [stall_unknown_layout](repeating: stall_unknown_layout(), count: 8)
    let count = stall_layouts_probe(&unknown, unknown.count)
    for layout in unknown.prefix(count) {
        guard let name = layout.name, let effect = layout.effect else { continue }
        logger.warning(
            "\(String(cString: name)) has a layout that is not known: \(String(cString: effect))")
    }
}

private let hasLoggedQueues = Atomic(false)

/// Logs once in this process that a queue's fields are not where any experiment finds them. After they were looked for.
func logUnknownQueueLayout(to logger: Logger) {
    guard !stall_queue_layout_is_known(),
        !hasLoggedQueues.exchange(true, ordering: .relaxed)
    else { return }
    logger.warning(
        """
        a Dispatch queue has a layout that is not known: queues are probed while they are idle, too, and the thread of a \
        stalled one is a guess
        """)
}
