import StallRunLoop

let loop = EventRunLoop.main
let worker = try LoopThread(name: "decoder")
let words = LoopBound(["run", "loop"], to: worker.loop)  // used on the worker's thread only

// A task, not `await` at the top level: that would make main asynchronous, and end the main thread.
Task {
    for await _ in loop.ticks(every: .milliseconds(20)).prefix(2) { print("tick") }
    do {
        let text = try await worker.loop.run { words.withValue { $0.joined(separator: " ") } }
        print("from the worker: \(text)")
    } catch {
        print("the worker has ended: \(error)")
    }
    worker.stop()
    do {
        try await worker.loop.run {}
    } catch {
        print("later: \(error)")
    }
    loop.stop()
}
loop.run()
