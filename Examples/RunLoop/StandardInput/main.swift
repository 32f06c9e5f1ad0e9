import Glibc
import StallRunLoop

let loop = EventRunLoop.main
var size = 0

// A terminal, a pipe, a file or /dev/null: what is no terminal or pipe is always ready.
let input = DescriptorSource(descriptor: 0) { @MainActor input, _ in
    var buffer = [UInt8](repeating: 0, count: 4_096)
    let count = read(0, &buffer, buffer.count)
    guard count > 0 else {
        input.invalidate()
        return loop.stop()
    }
    size += count
    print("read: \(String(decoding: buffer[..<count], as: UTF8.self))", terminator: "")
    fflush(nil)
}
try loop.add(input, toMode: .default)
print("type something; Ctrl-D ends it")
fflush(nil)
loop.run()
print("the end, after \(size) bytes")
