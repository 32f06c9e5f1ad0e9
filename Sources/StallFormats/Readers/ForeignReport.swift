// The common form of other programs' reports. A reader fills in what its format says and leaves the rest as it is: nothing
// is made up here.

internal import StallModel

/// A report of another program, as its format has it.
struct ForeignReport: Hashable {
    enum Kind: Hashable {
        /// A thread was stuck, and the writer says so.
        case hang
        /// The process ended. Whether it was stuck before is unknown.
        case crash
        /// A profiler's samples of one thread.
        case samples
        /// Stacks of one instant, taken by a person or a script.
        case snapshot
        /// A report about something else, as a noun with its article.
        case other(String)
    }

    var kind: Kind
    /// Where it begins in its text, from 1.
    var line: Int
    /// The report's own, for a report that is read twice: also while it is written.
    var identifier: String?
    var app = ""
    var version = ""
    var host = ""
    /// The operating system in its normal form (OSName.swift).
    var os: String?
    /// The machine's model as the report has it.
    var device: String?
    var buildID: BuildID?
    var pid: Int32?
    var start: UnixTime?
    /// Its start where a part of it, as the year, is only the likely one.
    var likelyStart: UnixTime?
    /// Its first line, where that has no full time: two reports with different times are two.
    var timeText: String?
    /// Nothing says when it was: neither a time nor one since the boot.
    var hasNoClock = false
    /// How many reports of the same content are before it in its text, where these are several.
    var occurrence: UInt64 = 0
    /// It was read to its end, though the text may not be.
    var isWhole = false
    /// Its format, where a text has reports of several.
    var format: ReportFormat?
    /// How long it lasted; nil if unknown.
    var duration: Duration?
    /// It lasted longer: it was interrupted.
    var isAtLeast = false
    /// How much of `ForeignSample.count` is one sample.
    var countOfSample: Int64 = 1
    /// In the order of the report.
    var threads: [ForeignThread] = []
    /// The thread that was stuck, where the report states it: an index in `threads`.
    var stalledThread: Int?
    var images: [Image] = []
}

/// A thread of a report.
struct ForeignThread: Hashable {
    /// The kernel's number where it is known, or the report's own.
    var number: Int32
    var name: String?
    var isMain = false
    /// Those of one stack may be one sample with a greater count.
    var samples: [ForeignSample] = []
    /// The sum of the counts of samples that a report has no room for.
    var omittedCount = 0.0

    init(number: Int32, name: String? = nil, isMain: Bool = false, samples: [ForeignSample] = []) {
        self.number = number
        self.name = name
        self.isMain = isMain
        self.samples = samples
    }
}

/// A stack of a thread.
struct ForeignSample: Hashable {
    /// Innermost first; inlined functions before the one that they were inlined into.
    var frames: [ForeignFrame] = []
    /// How many samples, or how much of the profile's unit.
    var count: Int64 = 1
    /// When it was taken, from the start of the report.
    var offset = Duration.zero
    /// Outer frames are missing.
    var isTruncated = false
}

/// A line of a stack.
struct ForeignFrame: Hashable {
    /// The function as the report spells it, mangled or not.
    var function: String?
    /// The path or the name of the binary.
    var image: String?
    /// The build ID or the UUID of the binary.
    var buildID: BuildID?
    /// From the load address of the binary; without a binary, the address. Nil where the report has only a name.
    var offset: UInt64?
    var file: String?
    var line: Int?
    var isInlined = false
    var kind = CodeAddressKind.returnAddress
}

extension ForeignFrame {
    /// A frame at an address, in the binary that has it.
    init(address: UInt64, in images: SortedImages, kind: CodeAddressKind) {
        let image = images.image(at: address)
        self.init()
        self.image = image?.path
        buildID = image?.buildID
        offset = address &- (image?.loadAddress ?? 0)
        self.kind = kind
    }
}
