import Foundation
import StallRunLoop

enum Message: Codable, Sendable {
    case job(below: Int)
    case answer(primes: Int, below: Int)
}

// JSON here; every encoder will do.
let coding = MessageCoding<Message>(
    encode: { Array(try JSONEncoder().encode($0)) },
    decode: { try JSONDecoder().decode(Message.self, from: Data($0)) })

/// The child: answers until the parent has finished.
func work() throws {
    let loop = EventRunLoop.main
    _ = try LoopMessagePort(
        descriptor: 3, on: loop, coding: coding, onEnd: { _, _ in loop.stop() }
    ) { parent, message in
        guard case .job(let limit) = message else { return }
        let primes = (2..<limit).filter { number in !(2..<number).contains { number % $0 == 0 } }
        do {
            try parent.send(.answer(primes: primes.count, below: limit))
        } catch { print("an answer was not sent: \(error)") }
    }
    loop.run()
}

/// The parent: starts this program again, with the other socket as descriptor 3.
func lead() throws {
    let loop = EventRunLoop.main
    let sockets = try MessageSockets()
    let child = try start([CommandLine.arguments[0], "child"], sockets.peer)
    let exit = try ChildProcessSource(pid: child) { end in
        print("the child: \(end)")
        loop.stop()
    }
    let port = try LoopMessagePort(
        descriptor: sockets.own, on: loop, coding: coding,
        onEnd: { _, end in
            print("its messages: \(end)")
            do { try loop.add(exit, toMode: .common) } catch { loop.stop() }
        }
    ) { _, message in
        guard case .answer(let primes, let limit) = message else { return }
        print("\(primes) primes below \(limit)")
    }
    for limit in [10, 100, 1_000] { try port.send(.job(below: limit)) }
    port.finish()
    loop.run()
}

func start(_ words: [String], _ socket: CInt) throws -> pid_t {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    posix_spawn_file_actions_adddup2(&actions, socket, 3)
    var arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
    defer {
        arguments.forEach { free($0) }
        posix_spawn_file_actions_destroy(&actions)
        close(socket)
    }
    var pid: pid_t = 0
    let error = posix_spawn(&pid, "/proc/self/exe", &actions, nil, &arguments, environ)
    precondition(error == 0, "posix_spawn failed with errno \(error)")
    return pid
}

if CommandLine.arguments.count > 1 { try work() } else { try lead() }
