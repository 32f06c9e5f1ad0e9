import CCaptureTesting
import Glibc
import StallCapture
import StallModel
import Testing

/// Goal: a capture of all threads finds every one with its whole stack, disturbs none that waits, and reports what it
/// left out.
/// Method: children with threads that stall in known ways; as in StackSamplerTests, each has recorded its callers. None
/// of them is registered with the sampler.
@Suite struct ThreadRoundTests {
    @Test func `threads that never registered are captured whole, blocked ones unnoticed`() async {
        await #expect(processExitsWith: .success) {
            // Only waits that last until they are released.
            let stalls: [Stall] = [.poll, .pipe, .semaphore, .condition, .mutex]
            let victims = stalls.map { Victim($0) }
            for victim in victims { victim.waitUntilBlocked() }
            let computing = Victim(.computing)
            var sampler = try StackSampler()
            let round = sampler.captureThreads(
                except: [victims[4].thread.id], budget: .seconds(20))
            #expect(round.skippedCount == 0)
            #expect(round.threads.map(\.id.rawValue) == round.threads.map(\.id.rawValue).sorted())
            for victim in victims.dropLast() + [computing] {
                let seen = try #require(round.threads.first { $0.id == victim.thread.id })
                let stack = try seen.stack.get()
                #expect(stack.endsIn(victim.callers) && !stack.isTruncated)
                #expect(stack.method == (victim === computing ? .signal : .signalFree))
                #expect(seen.name != nil)
            }
            #expect(!round.threads.contains { $0.id == victims[4].thread.id })
            let own = RegisteredThread.current().id
            #expect(!round.threads.contains { $0.id == own })
            computing.release()
            for victim in victims {
                victim.release()
                victim.waitForEnd()
                #expect(!victim.wasInterrupted)
            }
        }
    }

    @Test func `what there is no room or time for is counted`() async {
        await #expect(processExitsWith: .success) {
            let victims = (0..<6).map { _ in Victim(.semaphore) }
            for victim in victims { victim.waitUntilBlocked() }
            var sampler = try StackSampler()
            let all = sampler.captureThreads(except: [], budget: .seconds(20))
            #expect(all.threads.count >= 6 && all.skippedCount == 0)
            let some = sampler.captureThreads(except: [], limit: 4, budget: .seconds(20))
            #expect(some.threads.count == 4)
            #expect(some.skippedCount == all.threads.count - 4)
            let none = sampler.captureThreads(except: [], budget: .zero)
            #expect(none.threads.isEmpty && none.skippedCount == all.threads.count)
        }
    }

    @Test func `a thread that has ended is reported as such`() {
        let victim = Victim(.nothing)
        victim.waitForEnd()
        #expect(throws: CaptureError.threadEnded(victim.thread.id)) {
            try RegisteredThread.found(victim.thread.id)
        }
        #expect(threadName(victim.thread.id) == nil)
    }
}
