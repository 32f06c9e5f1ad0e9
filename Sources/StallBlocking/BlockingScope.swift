// Where a test forbids blocking: its task, and those that inherit from it.

internal import CBlockingCalls
internal import StallAgent
internal import StallCapture
internal import StallModel
internal import StallSymbols
internal import Synchronization

/// The calls of one test that may block.
package struct BlockingScope: Sendable {
    /// A call, by names.
    package struct Call: Sendable {
        package let name: String
        /// The line that makes the call, if one is known, and the module of its function.
        package let file: String?
        package let line: Int?
        package let module: String?
        /// Of the stack, innermost first, as far as they have names.
        package let functions: [String]
    }

    /// The scope that the current task is in; 0 for none.
    @TaskLocal package static var current: UInt64 = 0

    package let number: UInt64
    private let rules: [AllowRule]

    private static let last = Atomic<UInt64>(0)
    /// Held while calls are taken: there is one reader at a time.
    private static let reader = Mutex(())
    /// Whether calls are seen at all: not in a static program.
    package static let isPossible = stall_blocking_own(
        Unmanaged.passUnretained($current).toOpaque())

    package init(allowing rules: [String]) {
        _ = Self.isPossible
        number = Self.last.wrappingAdd(1, ordering: .relaxed).newValue
        self.rules = rules.map(AllowRule.init)
        stall_blocking_add_owner(number)
    }

    /// Ends the scope: later calls of its tasks are not noted. Returns its calls, each line once, and whether there were
    /// more than could be held.
    package func end() async -> (calls: [Call], isIncomplete: Bool) {
        let isIncomplete = stall_blocking_end_owner(number)
        let stacks = takeStacks()
        guard !stacks.isEmpty else { return ([], isIncomplete) }
        let names = await NameSearch.shared.names(at: Set(stacks.flatMap(\.locations)))
        var calls: [Call] = []
        for (name, locations) in stacks {
            let frames = locations.flatMap { names[$0] ?? [Frame($0)] }
            if frames.contains(where: rules.fit) || frames.areOfTesting { continue }
            let call = Call(name, frames)
            if !calls.contains(where: call.isAtSameLine) { calls.append(call) }
        }
        return (calls, isIncomplete)
    }

    private func takeStacks() -> [(name: String, locations: [CodeLocation])] {
        Self.reader.withLock { _ in
            var stacks: [(name: String, locations: [CodeLocation])] = []
            var images: ImageTable?
            while let call = ForbiddenCall.take(of: number) {
                let table = images ?? .current()
                images = table
                let locations = table.locate(call.stack)
                let isKnown = stacks.contains { $0.name == call.name && $0.locations == locations }
                if !isKnown { stacks.append((call.name, locations)) }
            }
            return stacks
        }
    }
}

extension BlockingScope.Call {
    fileprivate init(_ name: String, _ frames: [Frame]) {
        self.name = name
        let lines = frames.filter { $0.file != nil && $0.line != nil && !$0.isGenerated }
        let known = lines.first { !$0.isFetched } ?? lines.first
        file = known?.file
        line = known?.line
        module = known?.imageName
        functions = frames.compactMap(\.function)
    }

    /// Whether both are of one function at one line: Foundation may come to it in several ways.
    fileprivate func isAtSameLine(_ other: Self) -> Bool {
        line != nil && (name, file, line) == (other.name, other.file, other.line)
    }
}

extension Frame {
    /// Code that a macro or the package manager generated, in a file that may be gone.
    fileprivate var isGenerated: Bool { isIn("swift-generated-sources") || isIn("DerivedSources") }

    /// Of another package, which the package manager fetched: the line of its caller is preferred.
    fileprivate var isFetched: Bool { isIn("checkouts") }

    private func isIn(_ folder: Substring) -> Bool {
        file?.split(separator: "/").contains(folder) ?? false
    }
}

extension [Frame] {
    /// The testing library itself makes the call, as it records an issue of the test: it is met before any line that is known.
    fileprivate var areOfTesting: Bool {
        prefix { $0.file == nil }.contains { $0.imageName?.hasPrefix("libTesting.") == true }
    }
}
