// What is done to victims from outside, by helper processes of this program, and the control groups they are put in.

import CMishaps
import Foundation

/// Another process of this program.
final class Helper {
    private let process = Process()

    private let pipe: Pipe?

    init(_ role: String, _ arguments: any CustomStringConvertible..., readsOutput: Bool = false) {
        pipe = readsOutput ? Pipe() : nil
        if let pipe { process.standardOutput = pipe }
        process.executableURL = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath()
        process.arguments = ["helper", role] + arguments.map(\.description)
        try! process.run()
    }

    func end() {
        process.terminate()
        process.waitUntilExit()
    }

    /// Its output until its end.
    func output() -> String {
        let data = pipe?.fileHandleForReading.readDataToEndOfFile() ?? Data()
        process.waitUntilExit()
        return String(decoding: data, as: UTF8.self)
    }

    /// Whether it succeeded.
    @discardableResult
    func waitForEnd() -> Bool {
        process.waitUntilExit()
        return process.terminationStatus == 0
    }
}

/// What a helper process does.
func help(_ arguments: [String]) -> Never {
    let number = arguments.count > 1 ? Int32(arguments[1]) ?? 0 : 0
    let end = monotonic() + UInt64(arguments.count > 2 ? Int(arguments[2]) ?? 0 : 0) * 1_000_000
    func pause(_ milliseconds: ClosedRange<UInt32>) { usleep(.random(in: milliseconds) * 1000) }
    /// Stops the process and lets it go on, and prints when that was.
    func stop(by stop: () -> Bool, for length: ClosedRange<UInt32>, then goOn: () -> Void) {
        let began = monotonic()
        guard stop() else { exit(1) }
        pause(length)
        goOn()
        print(began / 1000, monotonic() / 1000)
    }
    switch arguments[0] {
    case "hog":
        while getppid() > 1 { for _ in 0..<1_000_000 { _ = getpid() } }
    case "stopper":
        while monotonic() < end {
            pause(50...300)
            stop(by: { kill(number, SIGSTOP) == 0 }, for: 60...600) { _ = kill(number, SIGCONT) }
        }
    case "tracer-all":
        while monotonic() < end {
            pause(50...300)
            stop(by: { mishap_debug_all(number, .random(in: 60...600)) }, for: 0...0) {}
        }
    case "tracer-one":
        while monotonic() < end {
            pause(50...200)
            guard mishap_debug_thread(number, 3, 400, 100) else { exit(1) }
        }
    case "freezer":
        // The parent's group is to be frozen without its freezer.
        let parent = (arguments[3] as NSString).deletingLastPathComponent
        let root = (parent as NSString).deletingLastPathComponent
        guard ControlGroup.write("\(getpid())", to: root + "/cgroup.procs") else { exit(1) }
        let thaw = ControlGroup.isUnified ? "0" : "THAWED"
        let freeze = ControlGroup.isUnified ? "1" : "FROZEN"
        while monotonic() < end {
            pause(50...300)
            stop(by: { ControlGroup.write(freeze, to: arguments[3]) }, for: 60...600) {
                _ = ControlGroup.write(thaw, to: arguments[3])
            }
        }
    default: fatalError("no helper \(arguments[0])")
    }
    exit(0)
}

/// A control group with this process in it, in either version of the interface.
struct ControlGroup {
    private let directory: String
    private let parent: String

    static let isUnified = FileManager.default.fileExists(atPath: "/sys/fs/cgroup/cgroup.procs")

    var freezeFile: String { directory + (Self.isUnified ? "/cgroup.freeze" : "/freezer.state") }

    /// Nil where the machine does not allow it.
    init?(freezing name: String) {
        self.init(name, controller: "freezer")
        guard Self.write("\(getpid())", to: directory + "/cgroup.procs") else {
            remove()
            return nil
        }
    }

    /// - Parameter limit: The CPUs that it may use.
    init?(limitingTo limit: Double, _ name: String) {
        self.init(name, controller: "cpu")
        let quota = Int(limit * 100_000)
        let isLimited =
            Self.isUnified
            ? Self.write("\(quota) 100000", to: directory + "/cpu.max")
            : Self.write("\(quota)", to: directory + "/cpu.cfs_quota_us")
        guard isLimited, Self.write("\(getpid())", to: directory + "/cgroup.procs") else {
            remove()
            return nil
        }
    }

    private init(_ name: String, controller: String) {
        parent = Self.isUnified ? "/sys/fs/cgroup" : "/sys/fs/cgroup/\(controller)"
        directory = parent + "/" + name
        mkdir(directory, 0o755)
    }

    /// Leaves the group and deletes it.
    func remove() {
        _ = Self.write("\(getpid())", to: parent + "/cgroup.procs")
        rmdir(directory)
    }

    static func write(_ text: String, to path: String) -> Bool {
        let file = open(path, O_WRONLY)
        guard file >= 0 else { return false }
        defer { close(file) }
        return Glibc.write(file, text, text.utf8.count) == text.utf8.count
    }
}
