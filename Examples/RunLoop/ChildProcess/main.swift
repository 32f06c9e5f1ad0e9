import Glibc
import StallRunLoop

/// Starts a shell command; returns its number, and the end of a pipe that has its output.
func start(_ command: String) -> (pid: pid_t, output: CInt) {
    var ends: [CInt] = [0, 0]
    precondition(pipe(&ends) == 0, "no pipe: errno \(errno)")
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1)
    for end in ends { posix_spawn_file_actions_addclose(&actions, end) }
    defer {
        posix_spawn_file_actions_destroy(&actions)
        close(ends[1])
    }
    let words: [String] = ["/bin/sh", "-c", command]
    var arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
    defer { arguments.forEach { free($0) } }
    var pid: pid_t = 0
    let error = posix_spawn(&pid, "/bin/sh", &actions, nil, &arguments, environ)
    precondition(error == 0, "posix_spawn failed with errno \(error)")
    return (pid, ends[0])
}

let loop = EventRunLoop.main
let child = start("echo one; echo two; exit 7")
var parts = 2  // the output and the exit status: either may come first

@MainActor func endOfPart() {
    parts -= 1
    if parts == 0 { loop.stop() }
}

let output = DescriptorSource(descriptor: child.output, onCancel: { close($0) }) {
    @MainActor output, _ in
    var buffer = [UInt8](repeating: 0, count: 4_096)
    let count = read(output.descriptor, &buffer, buffer.count)
    if count > 0 { return print(String(decoding: buffer[..<count], as: UTF8.self), terminator: "") }
    output.invalidate()
    endOfPart()
}
let exit = try ChildProcessSource(pid: child.pid) { @MainActor end in
    status = end
    endOfPart()
}
var status = ChildProcessEnd.unknown
try loop.add(output, toMode: .default)
try loop.add(exit, toMode: .default)
loop.run()
print("\(status)")
