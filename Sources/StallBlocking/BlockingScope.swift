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
        /// The innermost line that is known, and the module of its function.
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
    private static let symbolizer = Mutex(Symbolizer(options: SymbolizerOptions()))
    /// Whether calls are seen at all: not in a static program.
    package static let isPossible = stall_blocking_own(
        Unmanaged.passUnretained($current).toOpaque())

    package init(allowing rules: [String]) {
        _ = Self.isPossible
        number = Self.last.wrappingAdd(1, ordering: .relaxed).newValue
        self.rules = rules.map(AllowRule.init)
        stall_blocking_add_owner(number)
    }

    /// Ends the scope: later calls of its tasks are not noted. Returns its calls, each site once, and whether there were
    /// more than could be held.
    package func end() -> (calls: [Call], isIncomplete: Bool) {
        let isIncomplete = stall_blocking_end_owner(number)
        return (takeCalls(), isIncomplete)
    }

    private func takeCalls() -> [Call] {
        Self.symbolizer.withLock { symbolizer in
            var stacks: [(name: String, locations: [CodeLocation])] = []
            let images = ImageTable.current()
            while let call = ForbiddenCall.take(of: number) {
                let locations = images.locate(call.stack)
                let isKnown = stacks.contains { $0.name == call.name && $0.locations == locations }
                if !isKnown { stacks.append((call.name, locations)) }
            }
            let (names, _) = symbolizer.resolve(
                Array(Set(stacks.flatMap(\.locations))), images: images, budget: .seconds(5))
            return stacks.compactMap { name, locations in
                let frames = locations.flatMap { names[$0] ?? [Frame($0)] }
                let isAllowed = frames.contains(where: rules.fit)
                return isAllowed || frames.areOfTesting ? nil : Call(name, frames)
            }
        }
    }
}

extension BlockingScope.Call {
    fileprivate init(_ name: String, _ frames: [Frame]) {
        self.name = name
        let known = frames.first { $0.file != nil && $0.line != nil }
        file = known?.file
        line = known?.line
        module = known?.imageName
        functions = frames.compactMap(\.function)
    }
}

extension [Frame] {
    /// The testing library itself makes the call, as it records an issue of the test: it is met before any line that is known.
    fileprivate var areOfTesting: Bool {
        prefix { $0.file == nil }.contains { $0.imageName?.hasPrefix("libTesting.") == true }
    }
}
