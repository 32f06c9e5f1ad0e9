import StallDetection
import Testing

@testable import StallAgent

/// Goal: the watchdog never waits for the recorder, and nothing is lost uncounted.
@Suite struct BoundedQueueTests {
    @Test func `items come out in order, and nil after the close`() {
        let queue = BoundedQueue<Int>(capacity: 3)
        [1, 2, 3].forEach { queue.push($0) }
        queue.close()
        #expect([queue.pop(), queue.pop(), queue.pop(), queue.pop()] == [1, 2, 3, nil])
    }

    @Test func `a full queue drops the newest and counts it`() {
        let queue = BoundedQueue<Int>(capacity: 2)
        [1, 2, 3, 4].forEach { queue.push($0) }
        #expect(queue.takeDropped() == 2 && queue.takeDropped() == 0)
        queue.close()
        queue.push(5)
        #expect(queue.takeDropped() == 1)
        #expect([queue.pop(), queue.pop(), queue.pop()] == [1, 2, nil])
    }

    @Test func `a newer report of the same incident replaces the older one`() {
        let queue = BoundedQueue<Int>(capacity: 2)
        queue.push(10)
        queue.push(20)
        queue.push(11) { $0 / 10 == 1 }
        #expect([queue.pop(), queue.pop()] == [11, 20])
        #expect(queue.takeDropped() == 0)
    }

    /// Every item that is pushed comes out once or is counted, in every order of the threads.
    @Test func `between two threads nothing is lost uncounted`() throws {
        let queue = BoundedQueue<Int>(capacity: 8)
        let producer = try #require(
            AgentThread(name: "test-producer") {
                for item in 0..<10_000 { queue.push(item) }
                queue.close()
            })
        var taken: [Int] = []
        while let item = queue.pop() { taken.append(item) }
        producer.join()
        #expect(taken == taken.sorted() && Set(taken).count == taken.count)
        #expect(taken.count + queue.takeDropped() == 10_000)
    }
}
