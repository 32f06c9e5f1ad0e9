// Stalls that use the CPU, the disk or memory. They run one at a time.

import Foundation
import StallModel

extension Plant {
    static let work: [Plant] = [
        Plant(name: "pure", cause: .cpu, pace: .alone) {
            computing {
                (0..<20_000).reduce(UInt64(1)) { $0 &* 6_364_136_223_846_793_005 &+ UInt64($1) }
            }
        },
        Plant(name: "allocator", cause: .cpu, pace: .alone) {
            computing {
                UInt64((0..<200).map { [UInt8](repeating: UInt8($0 & 255), count: 64 + $0) }.count)
            }
        },
        Plant(name: "memcpy", cause: .cpu, pace: .alone) {
            let (from, to) = (
                UnsafeMutableRawPointer.allocate(byteCount: 8 << 20, alignment: 4096),
                UnsafeMutableRawPointer.allocate(byteCount: 8 << 20, alignment: 4096)
            )
            memset(from, 1, 8 << 20)
            memset(to, 1, 8 << 20)
            defer {
                from.deallocate()
                to.deallocate()
            }
            nonisolated(unsafe) let (source, target) = (from, to)
            return computing {
                memcpy(target, source, 8 << 20)
                return 1
            }
        },
        Plant(name: "4 hogs a core", cause: .starved, pace: .alone) { starve() },
        Plant(name: "fsync", cause: .disk, pace: .alone) {
            withFile { descriptor, _ in
                let bytes = [UInt8](repeating: 42, count: 8 << 20)
                return io(whatWaits: true) {
                    pwrite(descriptor, bytes, bytes.count, 0)
                    fsync(descriptor)
                }
            }
        },
        Plant(name: "cold read", cause: .disk, pace: .alone) {
            withFile(megabytes: 64) { descriptor, _ in
                var bytes = [UInt8](repeating: 0, count: 64 << 10)
                var offset = 0
                return io(whatWaits: true) {
                    if offset % (64 << 20) == 0 {
                        posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED)
                        posix_fadvise(descriptor, 0, 0, POSIX_FADV_RANDOM)
                    }
                    pread(descriptor, &bytes, bytes.count, off_t(offset % (64 << 20)))
                    offset += bytes.count
                }
            }
        },
        Plant(name: "O_DIRECT read", cause: .disk, pace: .alone) {
            withFile(megabytes: 64) { _, path in
                let direct = open(path, O_RDONLY | O_DIRECT_)
                guard direct >= 0 else { return nil }
                defer { close(direct) }
                let buffer = UnsafeMutableRawPointer.allocate(byteCount: 1 << 20, alignment: 4096)
                defer { buffer.deallocate() }
                var offset = 0
                return io(whatWaits: true) {
                    pread(direct, buffer, 1 << 20, off_t(offset % (64 << 20)))
                    offset += 1 << 20
                }
            }
        },
        Plant(name: "mmap of a cold file", cause: .pageFault, pace: .alone) {
            withFile(megabytes: 64) { descriptor, _ in
                return io {
                    posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED)
                    guard let map = mmap(nil, 64 << 20, PROT_READ, MAP_SHARED, descriptor, 0),
                        map != MAP_FAILED
                    else { return }
                    madvise(map, 64 << 20, MADV_RANDOM_)
                    let began = ContinuousClock.now
                    for page in stride(from: 0, to: 64 << 20, by: 4096)
                    where ContinuousClock.now - began < stallTime {
                        sink &+= UInt64(map.load(fromByteOffset: page, as: UInt8.self))
                    }
                    munmap(map, 64 << 20)
                }
            }
        },
    ]
}

#if arch(arm64)
private let O_DIRECT_: CInt = 0o200000
#else
private let O_DIRECT_: CInt = 0o40000
#endif
private let MADV_RANDOM_: CInt = 1

/// CPU time of the calling thread, and how long it has waited for a CPU.
private func account() -> (cpu: Duration, delay: Duration) {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    let text = (try? String(contentsOfFile: "/proc/thread-self/schedstat", encoding: .utf8)) ?? ""
    let fields = text.split(separator: " ")
    let delay = fields.count > 1 ? Int64(fields[1]) ?? 0 : 0
    return (.seconds(time.tv_sec) + .nanoseconds(time.tv_nsec), .nanoseconds(delay))
}

nonisolated(unsafe) private var sink: UInt64 = 0

func computing(_ piece: () -> UInt64) -> Outcome {
    let before = account()
    var cpu = Duration.zero
    while cpu < stallTime {
        sink &+= piece()
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        cpu = .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec) - before.cpu
    }
    return Outcome(isSpoiled: (account().delay - before.delay) > cpu)
}

/// - Parameter whatWaits: It is spoiled, too, when it computed for longer than it waited: a fast disk.
private func io(whatWaits: Bool = false, _ piece: () -> Void) -> Outcome {
    let (before, began) = (account(), ContinuousClock.now)
    while ContinuousClock.now - began < stallTime { piece() }
    let (after, elapsed) = (account(), ContinuousClock.now - began)
    let (cpu, delay) = (after.cpu - before.cpu, after.delay - before.delay)
    let rest = elapsed - cpu - delay
    return Outcome(isSpoiled: delay > rest || whatWaits && cpu > rest)
}

func withFile(
    megabytes: Int = 1, _ body: (Int32, String) -> Outcome?
) -> Outcome? {
    let path = scratch + "/truth-\(megabytes)"
    let descriptor = open(path, O_RDWR | O_CREAT, 0o600)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var facts = stat()
    fstat(descriptor, &facts)
    if facts.st_size < megabytes << 20 {
        let bytes = (0..<(1 << 20)).map { _ in UInt8.random(in: 0...255) }
        for _ in 0..<megabytes { _ = write(descriptor, bytes, bytes.count) }
        fsync(descriptor)
        // Not a part of the stall, whose threshold is passed by now: the caller plants again.
        return Outcome(isSpoiled: true)
    }
    return body(descriptor, path)
}

private func starve() -> Outcome? {
    let count = 4 * max(1, sysconf(CInt(_SC_NPROCESSORS_ONLN)))
    var hogs: [pid_t] = []
    for _ in 0..<count {
        var hog = pid_t()
        var arguments: [UnsafeMutablePointer<CChar>?] = [
            strdup("sh"), strdup("-c"), strdup("while :; do :; done"), nil,
        ]
        if posix_spawnp(&hog, "sh", nil, nil, &arguments, environ) == 0 { hogs.append(hog) }
    }
    defer {
        for hog in hogs {
            kill(hog, SIGKILL)
            var status: CInt = 0
            waitpid(hog, &status, 0)
        }
    }
    let (before, began) = (account(), ContinuousClock.now)
    while ContinuousClock.now - began < .milliseconds(1500) { sink &+= 1 }
    // The hogs take a while to start.
    let delay = account().delay - before.delay
    return Outcome(isSpoiled: delay < (ContinuousClock.now - began) * 0.65)
}
