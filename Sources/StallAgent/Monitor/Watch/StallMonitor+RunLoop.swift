// Foundation's RunLoop: CFRunLoop observers on the loop's own thread (CLinux/stall_cfrunloop.h).

public import Foundation
internal import Logging
internal import StallCapture
internal import StallDetection
internal import StallModel

extension StallMonitor {
    /// Watches Foundation's main run loop, ``watch(_:as:threshold:)-(RunLoop,_,_)`` with the name `main`.
    ///
    /// Under `async main` and `dispatchMain()` no thread runs it: watch the main actor or the main queue there.
    ///
    /// - Parameter threshold: How long it may be busy; the configuration's threshold if nil. At least 20 ms.
    public func watchMainRunLoop(threshold: Duration? = nil) {
        watch(RunLoop.main, as: "main", threshold: threshold)
    }

    /// Watches one of Foundation's run loops until the monitor stops or the loop's thread ends.
    ///
    /// Call it on the loop's own thread, or on another one; then watching begins when the loop next runs. The first run
    /// in a custom mode is watched once it has lasted half the threshold; from then on the mode is known. For a custom
    /// mode to be watched from the start, it must have a source or timer when watching begins.
    ///
    /// - Parameters:
    ///   - loop: The loop.
    ///   - name: The target's name in reports.
    ///   - threshold: How long it may be busy; the configuration's threshold if nil. At least 20 ms.
    public func watch(_ loop: RunLoop, as name: String, threshold: Duration? = nil) {
        guard agent != nil else { return }
        if loop === RunLoop.current {
            watchCurrentRunLoop(as: name, threshold: threshold)
        } else {
            // A timer, because adding one wakes the loop; a performed block would wait for an event.
            let timer = Timer(fire: Date(), interval: 0, repeats: false) { [self] _ in
                watchCurrentRunLoop(as: name, threshold: threshold)
            }
            loop.add(timer, forMode: .common)
        }
    }

    private func watchCurrentRunLoop(as name: String, threshold: Duration?) {
        let thread = RegisteredThread.current()
        guard let target = CFRunLoopTarget(thread) else {
            return configuration.logger.error("\(name) cannot be watched: no CFRunLoop")
        }
        let probeThread = agent?.probeThread
        probeThread?.add(target.correction)
        watch(
            target, LoopBeacon(target.beacon), as: name, threshold: threshold,
            key: .foundationRunLoop(thread.id), thread: thread.id,
            detach: {
                probeThread?.remove(target.correction)
                target.detach()
            })
    }
}
