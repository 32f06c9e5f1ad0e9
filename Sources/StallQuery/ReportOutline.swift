// A report whose stacks are numbers, for an export of millions of reports. The frames behind a number are looked up
// once and rendered once, whatever number of stacks it is on.

package import StallModel

/// One report, and the numbers of the stacks that belong to it.
package struct ReportOutline: Sendable {
    /// Without samples and threads.
    package var report: StallReport
    package var origin: ReportOrigin
    /// The group that the store has it in.
    package var group: ReportGroup
    /// The store's number of its loop: reports of equal numbers have the process, the loop's name and the threshold in
    /// common.
    package var loopNumber: Int64
    /// The store's number of its group.
    package var groupNumber: Int64
    /// All samples, in chronological order.
    package var samples: [OutlinedSample]
    /// Other threads; empty unless asked for.
    package var threads: [OutlinedThread]

    package init(
        report: StallReport, origin: ReportOrigin, group: ReportGroup, loopNumber: Int64,
        groupNumber: Int64, samples: [OutlinedSample], threads: [OutlinedThread]
    ) {
        self.report = report
        self.origin = origin
        self.group = group
        self.loopNumber = loopNumber
        self.groupNumber = groupNumber
        self.samples = samples
        self.threads = threads
    }

    /// The stack of the sample that is not late and stands for the most time; of equal ones the first.
    ///
    /// - Parameter isUsable: Decides whether a stack may be that; the next one is tried if not.
    package func heaviestStack(where isUsable: (Int64) throws -> Bool) rethrows -> Int64? {
        var tried: Set<Int> = []
        while true {
            var heaviest: (index: Int, weight: Duration, stack: Int64)?
            for (index, sample) in samples.enumerated() where !sample.sample.isLate {
                guard let stack = sample.stack, tried.isEmpty || !tried.contains(index) else {
                    continue
                }
                if let heaviest, sample.sample.weight <= heaviest.weight { continue }
                heaviest = (index, sample.sample.weight, stack)
            }
            guard let heaviest else { return nil }
            if try isUsable(heaviest.stack) { return heaviest.stack }
            tried.insert(heaviest.index)
        }
    }
}

/// A sample without its frames.
package struct OutlinedSample: Sendable {
    package var sample: Sample
    package var stack: Int64?

    package init(_ sample: Sample, stack: Int64?) {
        self.sample = sample
        self.stack = stack
    }
}

/// Another thread without its frames.
package struct OutlinedThread: Sendable {
    package var thread: ThreadSnapshot
    package var stack: Int64?

    package init(_ thread: ThreadSnapshot, stack: Int64?) {
        self.thread = thread
        self.stack = stack
    }
}

/// Looks up what the numbers of outlines stand for, on the snapshot that they were read from.
package protocol OutlineLookup: AnyObject {
    /// The locations on a stack, innermost first. Locations are numbered from 0 in the order in which they are first
    /// asked for; a location that was guessed has a number of its own.
    ///
    /// - Parameter places: Replaced by the numbers.
    /// - Returns: Whether the stack is deeper than what was recorded.
    func places(ofStack stack: Int64, _ places: inout [Int32]) throws -> Bool
    /// The frames of a location, read again each time: inlined functions first.
    func frames(ofPlace place: Int32) throws -> [Frame]
    /// The images that a run's reports refer to, at their last load addresses.
    func images(ofRun run: UniqueID) throws -> [Image]
}

/// The time that stalls of an app's loop spent with one stack.
package struct StackTime: Hashable, Sendable {
    package var app: String
    package var loop: String
    package var stack: Int64
    /// The time that the samples stand for; ends at the largest number.
    package var time_ns: Int64
    package var sampleCount: Int

    package init(app: String, loop: String, stack: Int64, time_ns: Int64, sampleCount: Int) {
        self.app = app
        self.loop = loop
        self.stack = stack
        self.time_ns = time_ns
        self.sampleCount = sampleCount
    }
}
