// Stalls in system calls that do not wait: the kernel computes. And in those that wait although they look like file
// I/O.

import Foundation
import StallModel

extension Plant {
    static let calls: [Plant] = [
        Plant(name: "read of /dev/urandom", cause: .cpu, pace: .alone) {
            withOpen("/dev/urandom", O_RDONLY) { random in
                calling { bytes in _ = read(random, bytes, 1 << 16) }
            }
        },
        Plant(name: "write to /dev/null", cause: .cpu, pace: .alone) {
            withOpen("/dev/null", O_WRONLY) { null in
                calling { bytes in for _ in 0..<500 { _ = write(null, bytes, 1 << 16) } }
            }
        },
        Plant(name: "pipe to itself", cause: .cpu, pace: .alone) {
            var ends: [Int32] = [0, 0]
            pipe(&ends)
            defer { for end in ends { close(end) } }
            let (reading, writing) = (ends[0], ends[1])
            return calling { bytes in
                _ = write(writing, bytes, 1 << 16)
                _ = read(reading, bytes, 1 << 16)
            }
        },
        Plant(name: "socket pair to itself", cause: .cpu, pace: .alone) {
            var ends: [Int32] = [0, 0]
            socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0, &ends)
            defer { for end in ends { close(end) } }
            let (near, far) = (ends[0], ends[1])
            return calling { bytes in
                _ = write(near, bytes, 1 << 14)
                _ = read(far, bytes, 1 << 14)
            }
        },
        Plant(name: "memfd", cause: .cpu, pace: .alone) {
            // Not in Swift's Glibc.
            typealias Create = @convention(c) (UnsafePointer<CChar>, UInt32) -> CInt
            guard let create = dlsym(nil, "memfd_create") else { return nil }
            let memory = unsafeBitCast(create, to: Create.self)("plant", 0)
            guard memory >= 0 else { return nil }
            defer { close(memory) }
            return calling { bytes in
                pwrite(memory, bytes, 1 << 20, 0)
                pread(memory, bytes, 1 << 20, 0)
            }
        },
        Plant(name: "read of a cached file", cause: .cpu, pace: .alone) {
            withFile { descriptor, _ in
                calling { bytes in pread(descriptor, bytes, 1 << 20, 0) }
            }
        },
        Plant(name: "stat of cached files", cause: .cpu, pace: .alone) {
            calling { _ in
                var facts = stat()
                for _ in 0..<500 { lstat("/usr/share/doc", &facts) }
            }
        },
        Plant(name: "directory scan", cause: .cpu, pace: .alone) {
            scan("/usr/share", depth: 2)
            return calling { _ in scan("/usr/share", depth: 2) }
        },
        Plant(name: "spin lock", cause: .lock, pace: .alone) {
            nonisolated(unsafe) let lock = UnsafeMutablePointer<pthread_spinlock_t>.allocate(
                capacity: 1)
            pthread_spin_init(lock, 0)
            pthread_spin_lock(lock)
            Thread.detachNewThread {
                usleep(stallMicroseconds)
                pthread_spin_unlock(lock)
            }
            pthread_spin_lock(lock)
            return Outcome()
        },
        Plant(name: "open of a FIFO", cause: .ipc) {
            let path = "\(scratch)/fifo-\(threadID())"
            mkfifo(path, 0o600)
            Thread.detachNewThread {
                usleep(stallMicroseconds)
                close(open(path, O_WRONLY))
            }
            close(open(path, O_RDONLY))
            unlink(path)
            return Outcome()
        },
    ]
}

private func withOpen(_ path: String, _ flags: CInt, _ body: (Int32) -> Outcome?) -> Outcome? {
    let descriptor = open(path, flags)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    return body(descriptor)
}

/// Calls until the thread has computed for long enough.
private func calling(_ piece: (UnsafeMutableRawPointer) -> Void) -> Outcome {
    let bytes = UnsafeMutableRawPointer.allocate(byteCount: 1 << 20, alignment: 4096)
    defer { bytes.deallocate() }
    memset(bytes, 1, 1 << 20)
    return computing {
        piece(bytes)
        return 1
    }
}

private func scan(_ path: String, depth: Int) {
    guard let directory = opendir(path) else { return }
    defer { closedir(directory) }
    while let entry = readdir(directory) {
        let name = withUnsafeBytes(of: &entry.pointee.d_name) {
            String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
        }
        guard name != ".", name != ".." else { continue }
        var facts = stat()
        lstat(path + "/" + name, &facts)
        if depth > 0, facts.st_mode & S_IFMT == S_IFDIR {
            scan(path + "/" + name, depth: depth - 1)
        }
    }
}
