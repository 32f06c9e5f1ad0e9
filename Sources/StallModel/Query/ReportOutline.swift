// A report without its stacks: what a table of millions of reports shows of each.

/// One report, and which stack of it stands for most of its time.
package struct ReportOutline: Sendable {
    /// Without samples and threads.
    package var report: StallReport
    /// The group that the store has it in.
    package var group: ReportGroup
    package var sampleCount: Int
    /// The stack of the sample that is not late and stands for the most time; of equal ones the first.
    package var heaviestStack: Int64?

    package init(
        report: StallReport, group: ReportGroup, sampleCount: Int, heaviestStack: Int64?
    ) {
        self.report = report
        self.group = group
        self.sampleCount = sampleCount
        self.heaviestStack = heaviestStack
    }
}

/// The time that stalls of an app's loop spent with one stack.
package struct StackTime: Hashable, Sendable {
    package var app: String
    package var loop: String
    package var stack: Int64
    /// What the samples stand for; ends at the largest number.
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
