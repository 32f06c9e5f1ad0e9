// The smallest app that is watched: it says what the agent takes, in its own numbers. scripts/host-cost runs it.

import Glibc

#if AGENT
import StallAgent
#elseif ARGUMENTS
import ArgumentParser
#endif

/// Descriptors that are open.
func descriptors() -> Int {
    guard let directory = opendir("/proc/self/fd") else { return -1 }
    defer { closedir(directory) }
    var count = 0
    while readdir(directory) != nil { count += 1 }
    return count - 3  // ".", ".." and the directory's own
}

/// A line of /proc/self/status, in its unit.
func status(_ key: String) -> Int {
    guard let file = fopen("/proc/self/status", "r") else { return -1 }
    defer { fclose(file) }
    var line = [CChar](repeating: 0, count: 256)
    while fgets(&line, 256, file) != nil {
        let text = String(
            decoding: line.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
        guard text.hasPrefix(key + ":") else { continue }
        return Int(text.drop { !$0.isNumber }.prefix { $0.isNumber }) ?? -1
    }
    return -1
}

func now_us() -> Int {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return time.tv_sec * 1_000_000 + time.tv_nsec / 1000
}

func say(_ name: String, _ value: Int) { print("\(name) \(value)") }

say("descriptors_before", descriptors())
say("resident_before_kb", status("VmRSS"))
#if AGENT
let began = now_us()
let monitor = try StallMonitor.start(
    .init(app: "host-cost", version: "1", store: CommandLine.arguments[1]))
let started = now_us()
let loop = EventRunLoop.main
monitor.watch(loop, as: "main", threshold: .milliseconds(250))
usleep(300_000)
say("start_us", started - began)
say("descriptors", descriptors())
say("resident_kb", status("VmRSS"))
say("threads", status("Threads"))
let stopping = now_us()
monitor.stop()
say("stop_us", now_us() - stopping)
#elseif ARGUMENTS
struct App: ParsableCommand {
    @Option var count = 1
    func run() { say("count", count) }
}
App.main([])
#else
usleep(300_000)
say("descriptors", descriptors())
say("resident_kb", status("VmRSS"))
say("threads", status("Threads"))
#endif
