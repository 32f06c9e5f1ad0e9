// What an app's loop does all day: none of it may ever be called a stall.

import Foundation
import StallAgent

/// A display-like timer, a pipe that another thread writes to, and a source that the app signals itself.
///
/// Unchecked: after `init` it is used on the loop's thread alone.
final class HealthyLife: @unchecked Sendable {
    private var frames = 0
    private var messages = 0
    private var updates = 0
    private var timer: LoopTimer?
    private let pipe = Pipe()

    init(_ loop: EventRunLoop) throws {
        let update = LoopSource { [self] _ in updates += 1 }
        loop.add(update, toMode: .common)
        let timer = LoopTimer(after: .milliseconds(16), every: .milliseconds(16)) { [self] _ in
            frames += 1
            if frames.isMultiple(of: 10) {
                update.signal()
                loop.wakeUp()
            }
        }
        loop.add(timer, toMode: .common)
        self.timer = timer

        let reader = pipe.fileHandleForReading
        try loop.add(
            DescriptorSource(descriptor: reader.fileDescriptor) { [self] _, _ in
                messages += reader.availableData.count
            }, toMode: .common)
        let writer = pipe.fileHandleForWriting
        Thread.detachNewThread {
            while (try? writer.write(contentsOf: [1])) != nil {
                Thread.sleep(forTimeInterval: 0.05)
            }
        }
    }

    func stop() { timer?.invalidate() }

    func print() {
        Swift.print("healthy: \(frames) frames, \(messages) messages, \(updates) updates")
    }
}
