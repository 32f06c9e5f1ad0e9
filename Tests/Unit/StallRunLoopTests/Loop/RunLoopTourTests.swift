import TestSupport
import Testing

/// Goal: the experiments of the tour come out as their texts say, each time.
@Suite struct RunLoopTourTests {
    static let outcomes = [
        "tracking": """
        tracking:
          while tracking: default-mode timer 0 times, common-mode timer 5 times
          then, in one pass of the default mode: default-mode timer 1 times

        """,
        "queues": """
        queues:
          serial queue: the performed block ran, the loop ended, the queue's next block ran
          concurrent queue: the queue's next block ran, the performed block ran, the loop ended

        """,
        "keep-alive": """
        keep-alive:
          a thread without a source: its run has finished
          a thread with a source: it slept until it was stopped
          LoopThread: job 1
          LoopThread: job 2
          LoopThread: job 3
          after stop(): the loop's thread has stopped

        """,
        "wake-up": """
        wake-up:
          perform without wakeUp: the block has not run after 100 ms
          after wakeUp: the block ran
          post, which is both: the block ran

        """,
    ]

    @Test(arguments: outcomes)
    func `an experiment has its outcome`(name: String, outcome: String) throws {
        let tour = try BuiltProgram("RunLoopTour", [name]).finish()
        #expect(tour.output == outcome)
        #expect(tour.status == 0)
    }
}
