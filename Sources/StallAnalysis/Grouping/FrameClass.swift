// Classifies frames. The user's rules decide first, then Rules/builtin.rules.

package import StallModel
package import StallQuery

/// The class of a frame.
package enum FrameClass: String, Hashable, Sendable {
    /// App code: names a group.
    case app
    /// Waits: for a lock, a timeout, a file or a peer.
    case wait
    /// Run loops, queues, thread entry points.
    case base
    /// Adapts calling conventions.
    case thunk
    /// The language runtime.
    case runtime
    /// The one body of several identical app functions; only the caller shows which of them runs.
    case merged
    /// Memory: allocation, copying.
    case allocator
    /// The agent itself, if it is on the captured stack.
    case monitor
    /// Libraries that come with the system or the toolchain.
    case system
    case kernel
    /// Ignored by a rule of the user's.
    case skipped
}

/// A frame prepared for grouping. A class, because every stack with the frame shares it.
package final class ClassifiedFrame: Sendable {
    package let frame: Frame
    package let key: SymbolKey
    package let frameClass: FrameClass
    /// The rule that decided, as text: what `stallctl why` shows.
    package let rule: String
    /// Further rules that applied; the user's with file and line.
    package let notes: [String]
    /// The kind of the wait.
    package let wait: WaitClass?
    /// Runs callouts: frames below it did not choose the frames above.
    let isLoop: Bool
    /// The program's entry point, which names a stall of code written directly in it.
    let isEntryPoint: Bool
    /// Of an interpreted program.
    let isScript: Bool
    /// Counts like an app frame, whatever its class.
    let isKept: Bool
    /// Its callers do not count.
    package let isStop: Bool
    /// The Swift module; nil for other languages.
    package let module: String?
    /// Distinguishes functions of the same name: the Swift module, or the image if there is none.
    package let owner: String
    /// As a step on the dominant path.
    let step: PathStep

    /// - Parameters:
    ///   - executable: The build ID of the program, whose code is the app's wherever it is installed.
    ///   - isMerged: Whether it is inlined into a merged function.
    ///   - isLean: Forget the parts of the frame that nothing needs once it is classified: of a large store's functions
    ///     they are most of the memory.
    ///   - homes: Those under the rules that decide.
    init(
        _ frame: Frame, executable: BuildID?, isMerged: Bool = false, isLean: Bool = false,
        homes: inout FrameHomes
    ) {
        var kept = frame
        if isLean {
            (kept.file, kept.line) = (nil, nil)
            if kept.function != nil { kept.rawName = nil }
        }
        self.frame = kept
        module = frame.rawName.flatMap(mangledModule)
        let name = SymbolKey(frame: frame, module: module)
        key = isMerged && name.role == .function ? name.merged : name
        let home = homes.home(of: frame, module: module)
        owner = module ?? home.imageName ?? ""
        step = PathStep(frame, key: key, owner: owner)
        var facts = FrameFacts(
            frame, home, key: key, module: module, executable: executable)
        if homes.isOfOwnSource(frame, home, executable: executable) { facts.kinds.insert(.source) }
        var verdict = FrameVerdict()
        homes.rules.forEachFitting(facts, among: home.rules) { rule in verdict.apply(rule, facts) }
        if key.role == .merged, verdict.frameClass == .app { verdict.isMerged() }
        frameClass = verdict.frameClass
        rule = verdict.rule
        notes = verdict.notes
        wait = verdict.wait
        isLoop = verdict.isLoop
        isEntryPoint = verdict.isEntryPoint
        isScript = facts.kinds.contains(.script)
        isKept = verdict.isKept
        isStop = verdict.isStop
    }

    /// A frame on its own.
    package convenience init(
        _ frame: Frame, executable: BuildID? = nil, rules: GroupingRules = .builtIn
    ) {
        var homes = FrameHomes(rules: rules)
        self.init(frame, executable: executable, homes: &homes)
    }

    /// In a folder of installed packages, of which the app itself may be one.
    var isOfPackage: Bool {
        frame.imagePath?.contains("-packages/") == true
            || frame.imagePath?.contains("/node_modules/") == true
    }

    /// Whether it can name a group.
    package var counts: Bool { frameClass == .app || isKept }
}

/// Shown instead of the name of a merged function.
package let mergedWords = "one of several merged functions"

/// The outcome of the rules for one frame.
private struct FrameVerdict {
    var frameClass = FrameClass.app
    var rule = ""
    var notes: [String] = []
    var wait: WaitClass?
    var isLoop = false
    var isEntryPoint = false
    var isKept = false
    var isStop = false

    mutating func isMerged() {
        (frameClass, rule) = (.merged, mergedWords)
    }

    /// - Returns: Whether the class is now decided.
    mutating func apply(_ rule: GroupingRule, _ facts: FrameFacts) -> Bool {
        let source = rule.file.map { "\($0):\(rule.line): " } ?? ""
        switch rule.action {
        case .keep:
            isKept = true
            notes.append(source + "kept, \(rule.reason(facts))")
            return false
        case .stop:
            isStop = true
            notes.append(source + "its callers do not count, \(rule.reason(facts))")
            return false
        case .classify(let frameClass):
            self.frameClass = frameClass
            self.rule = source + rule.reason(facts)
        case .wait(let wait):
            frameClass = .wait
            self.wait = wait
            self.rule = source + "waits: \(wait.rawValue)"
        case .base(let base):
            frameClass = .base
            isLoop = base == .loop
            isEntryPoint = base == .entry
            self.rule = source + rule.reason(facts)
        case .merge, .split, .allow: break  // do not apply to frames
        }
        return true
    }
}

extension FrameFacts {
    fileprivate init(
        _ frame: Frame, _ home: FrameHome, key: SymbolKey, module: String?, executable: BuildID?
    ) {
        imagePath = frame.imagePath
        imageName = home.imageName
        self.module = module
        names = []
        if let name = frame.function ?? frame.rawName {
            for spelling in [key.text, FunctionSpelling.plainName(key.text), key.display, name]
            where !names.contains(spelling) {
                names.append(spelling)
            }
        }
        kinds = []
        if key.role == .thunk { kinds.insert(.thunk) }
        if key.role == .runtime { kinds.insert(.runtime) }
        if !frame.isScript, FunctionSpelling.isEntryPoint(key.text, image: imageName ?? "") {
            kinds.insert(.entry)
        }
        if frame.imagePath == nil { kinds.insert(.nowhere) }
        if frame.isScript { kinds.insert(.script) }
        if let executable, frame.buildID == executable { kinds.insert(.program) }
        isMangled = frame.rawName?.hasPrefix("_Z") == true
        if home.isOfLibrary(frame, named: key.text, executable: executable) {
            kinds.insert(.library)
        }
    }
}

extension GroupingRule {
    /// The rule's match in the frame, as text.
    fileprivate func reason(_ facts: FrameFacts) -> String {
        if functions.isEmpty, let kind = kinds.first(where: { facts.kinds.contains($0) }) {
            return kind.words
        }
        if !functions.isEmpty, let name = facts.names.first {
            if case .base(.loop) = action { return "runs callouts" }
            return functions.contains { $0.literal != nil && facts.names.contains($0.literal!) }
                ? "function \(name)"
                : "function " + functions.first { facts.names.contains(where: $0.matches) }!.pattern
        }
        if !modules.isEmpty, let module = facts.module { return "module \(module)" }
        return "image \(facts.imageName ?? "")"
    }
}

extension FrameKind {
    fileprivate var words: String {
        switch self {
        case .thunk: "adapts calling conventions"
        case .runtime: "made by the compiler or part of the language runtime"
        case .entry: "begins the program"
        case .nowhere: "in no known image"
        case .program: "in the program"
        case .source: "of the app's own sources"
        case .script: "of a script"
        case .library: "of a library"
        }
    }
}
