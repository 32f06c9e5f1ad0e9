import Glibc
import StallRunLoop

let loop = EventRunLoop.main
let folder = CommandLine.arguments.dropFirst().first ?? "."

let watch = try FileSource(path: folder) { events, name in
    if events.contains(.gone) {
        print("the folder is gone")
        loop.stop()
    }
    if events.contains(.lost) { print("too many changes at once: read the folder again") }
    guard let name else { return }
    if events.contains(.created) { print("\(name) came") }  // made here, or moved here
    if events.contains(.written) { print("\(name) was written") }
    if events.contains(.deleted) { print("\(name) was deleted") }
    fflush(nil)
}
try loop.add(watch, toMode: .default)
print("watching")
fflush(nil)
loop.run()
