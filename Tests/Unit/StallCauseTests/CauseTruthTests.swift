import Foundation
import TestSupport
import Testing

/// Goal: the whole path, from a thread that waits to a cause in the store, yields what was planted.
/// Method: `make truth-cause`'s program with each kind of stall once, in its own process. Bars are lower than the
/// tool's, since one mistake of forty is two in a hundred, and a busy machine starves threads.
@Suite struct CauseTruthTests {
    @Test func `planted stalls get their causes, holders and deadlocks`() throws {
        try withTemporaryDirectory { directory in
            let run = try BuiltProgram("cause-truth", ["run", directory.path, "1"]).finish()
            let result = try #require(
                run.output.firstMatch(
                    of:
                        /truth cause right=(\d+) of=(\d+) holder_named=(\d+) of=(\d+) deadlocks=(\d+) of=(\d+)/
                ))
            let numbers = [result.1, result.2, result.3, result.4, result.5, result.6].map {
                Int($0)!
            }
            #expect(numbers[1] >= 25 && numbers[3] >= 10 && numbers[5] == 3)
            #expect(numbers[0] * 10 >= numbers[1] * 8, "\(run.output)")
            #expect(numbers[2] == numbers[3], "\(run.output)")
            #expect(numbers[4] == numbers[5], "\(run.output)")
            #expect(!run.output.contains("a deadlock that is none"))
        }
    }
}
