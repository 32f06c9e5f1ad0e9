// The environment of a program that `run` starts. CStallPreload/environment.c reads it.

internal import Glibc

/// Variables in the order of the process's own, with those for the agent at their end: programs that overwrite their
/// arguments to change their title use the room up to the first gap.
struct RunEnvironment {
    private let given: [String: String]
    private var added: [(name: String, value: String)] = []
    private var preloaded: String?

    init(_ environment: [String: String]) { given = environment }

    subscript(name: String) -> String? {
        added.last { $0.name == name }?.value ?? given[name].flatMap { $0.isEmpty ? nil : $0 }
    }

    mutating func set(_ name: String, _ value: String) { added.append((name, value)) }

    /// Makes the dynamic linker load the objects before the program's own libraries.
    mutating func preload(_ paths: [String]) {
        preloaded = (paths + [given["LD_PRELOAD"] ?? ""]).filter { !$0.isEmpty }
            .joined(separator: ":")
    }

    /// - Parameter rules: Of what may block all the same.
    mutating func forbidBlocking(allowing rules: [String]) {
        set("STALLWATCH_FORBID_BLOCKING", "1")
        if !rules.isEmpty {
            set("STALLWATCH_ALLOW_BLOCKING", rules.joined(separator: "\n"))
        }
    }

    /// Lists what was added, for its removal in the program.
    mutating func finish() {
        set("STALLWATCH_RUN", added.map(\.name).joined(separator: " "))
    }

    /// The absolute path of the agent's store, as the agent finds it.
    func storePath(option: String?) -> String {
        if let path = option ?? self["STALLWATCH_STORE"] { return Self.absolute(path) }
        let state = self["STATE_DIRECTORY"]?.split(separator: ":").first.map(String.init)
        if let state, state.hasPrefix("/") { return state + "/stalls.sqlite" }
        return Self.absolute("stalls.sqlite")
    }

    private static func absolute(_ path: String) -> String {
        guard !path.hasPrefix("/"), let here = getcwd(nil, 0) else { return path }
        defer { free(here) }
        return String(cString: here) + "/" + path
    }

    /// `NAME=value`, as `execve` takes them.
    var words: [[CChar]] {
        var names = Set(added.map(\.name))
        if preloaded != nil { names.insert("LD_PRELOAD") }
        var words: [[CChar]] = []
        // The bytes as they are: a value need not be UTF-8.
        var next = environ
        while let entry = next.pointee {
            let name = String(cString: entry).prefix { $0 != "=" }
            if !names.contains(String(name)) {
                words.append(Array(UnsafeBufferPointer(start: entry, count: strlen(entry) + 1)))
            }
            next += 1
        }
        let last = preloaded.map { [(name: "LD_PRELOAD", value: $0)] } ?? []
        return words + (added + last).map { Array("\($0.name)=\($0.value)".utf8CString) }
    }
}
