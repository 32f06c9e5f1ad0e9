// The functions that stall. Each is a mistake found in real apps. They are not inlined, so that even a stripped build
// has them as separate functions.

import Foundation

@inline(never) func sleepInTimer() {
    Thread.sleep(forTimeInterval: 2)
}

struct Photo {
    var title: String
    var aspect: Double
}

/// Computes the layout of a photo album on the main thread, from scratch: 620 ms of CPU, however busy the machine is.
@inline(never) func drawComplexLayout(_ photos: [Photo]) {
    // Inlined, not in a function: on a busy machine the kernel often preempts in this call, and the samples would show
    // its caller.
    var began = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &began)
    var now = began
    var height = 0.0
    repeat {
        let rows = arrange(photos.sorted { $0.title < $1.title }, perRow: 7) { photo, width in
            width / photo.aspect + Double(photo.title.utf8.count)
        }
        height += rows.reduce(0) { $0 + ($1.max() ?? 0) }
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now)
    } while (now.tv_sec - began.tv_sec) * 1000 + (now.tv_nsec - began.tv_nsec) / 1_000_000 < 620
    precondition(height > 0)
}

private func arrange<Item, Height>(
    _ items: [Item], perRow: Int, measure: (Item, Double) -> Height
) -> [[Height]] {
    stride(from: 0, to: items.count, by: perRow).map { start in
        items[start..<min(start + perRow, items.count)].map { measure($0, 1920 / Double(perRow)) }
    }
}

/// Sends a request to a server that does not answer for a second, and waits for it.
@inline(never) func fetchSynchronously(port: UInt16) {
    let descriptor = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
    defer { close(descriptor) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = INADDR_LOOPBACK.bigEndian
    let connected = withUnsafeBytes(of: &address) { bytes in
        connect(
            descriptor, bytes.assumingMemoryBound(to: sockaddr.self).baseAddress,
            socklen_t(bytes.count))
    }
    precondition(connected == 0, "the demo's own server is gone")
    var answer = [UInt8](repeating: 0, count: 512)
    precondition(read(descriptor, &answer, answer.count) > 0, "the demo's own server hung up")
}

/// Writes and syncs everything, however little has changed: 520 ms of it, not counting waits for a CPU.
@inline(never) func saveEverything() {
    let path = NSTemporaryDirectory() + "/stallwatch-demo-\(getpid())"
    let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
    precondition(descriptor >= 0, "\(path) cannot be written")
    defer {
        close(descriptor)
        unlink(path)
    }
    let document = [UInt8](repeating: 42, count: 8 << 20)
    let (began, delayBefore) = (ContinuousClock.now, threadRunDelay())
    repeat {
        lseek(descriptor, 0, SEEK_SET)
        precondition(write(descriptor, document, document.count) == document.count)
        fsync(descriptor)
    } while ContinuousClock.now - began - (threadRunDelay() - delayBefore) < .milliseconds(520)
}

/// How long the calling thread has waited for a CPU; zero if the kernel does not provide it.
private func threadRunDelay() -> Duration {
    let text = try? String(contentsOfFile: "/proc/thread-self/schedstat", encoding: .utf8)
    let fields = text?.split(separator: " ") ?? []
    return .nanoseconds(fields.count > 1 ? Int64(fields[1]) ?? 0 : 0)
}

/// The lock that the main thread and the compactor share.
private let database = NSLock()

/// Holds the lock for too long. Runs on a thread of its own; calls `whenLocked` there once it has the lock.
@inline(never) func compactDatabase(_ whenLocked: () -> Void) {
    database.lock()
    whenLocked()
    Thread.sleep(forTimeInterval: 0.8)
    database.unlock()
}

@inline(never) func waitForWorker() {
    database.lock()
    database.unlock()
}
