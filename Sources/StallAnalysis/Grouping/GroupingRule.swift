// One line of a rules file.

internal import StallModel

/// What to do with the frames or groups that a rule fits.
enum RuleAction: Hashable, Sendable {
    /// The frame is of this class.
    case classify(FrameClass)
    case wait(WaitClass)
    /// Runs callouts, or begins the program, as `Base` says.
    case base(Base)
    /// The frame counts on the way to a key as the app's frames do, whatever its class.
    case keep
    /// What called the frame does not count.
    case stop
    /// The groups that the rule fits are one.
    case merge(into: String)
    /// The group that the rule fits is told apart further.
    case split(by: SplitKey)

    enum Base: String, CaseIterable, Hashable, Sendable {
        case plain, loop, entry
    }
}

/// What tells the parts of a split group apart.
enum SplitKey: String, CaseIterable, Hashable, Sendable {
    /// The function that the accounting one called for most of the time, of whatever image.
    case callee
    /// All callers instead of two.
    case callers
    /// What was waited for.
    case wait
}

/// What is known of a frame besides its names.
enum FrameKind: String, CaseIterable, Hashable, Sendable {
    /// Adapts calling conventions.
    case thunk
    /// Made by the compiler, or part of the language runtime.
    case runtime
    /// The program's `main`.
    case entry
    /// In no known image.
    case nowhere
    /// In the program's own executable.
    case program
    /// Compiled from sources of the app's, as debug information says.
    case source
    /// In a library of the system or the toolchain, also when that is linked statically, or in no known image.
    case library
}

/// One rule: what it looks at, and what it does. All selectors must fit; of one selector's globs, one.
struct GroupingRule: Hashable, Sendable {
    var action: RuleAction
    var images: [Glob] = []
    var modules: [Glob] = []
    var functions: [Glob] = []
    /// The key frames in one text, `a() <- b() <- c()`; for merges only.
    var paths: [Glob] = []
    var kinds: [FrameKind] = []
    /// The file it stands in; nil for a built-in rule.
    var file: String?
    var line: Int

    init(_ action: RuleAction, file: String?, line: Int) {
        self.action = action
        self.file = file
        self.line = line
    }
}

/// What rules look at in a frame.
struct FrameFacts {
    var imagePath: String?
    var imageName: String?
    /// The Swift module; nil for other languages.
    var module: String?
    /// The spellings that a name may be known by.
    var names: [String]
    var kinds: Set<FrameKind>
    /// A mangled name: C's functions are called otherwise.
    var isMangled = false
}

extension GroupingRule {
    /// Whether the rule fits a frame. One that only names functions is found by them instead: see ``GroupingRules``.
    func fits(_ facts: FrameFacts) -> Bool {
        fits(kinds: facts.kinds) && modules.fit(facts.module) && fitsImage(of: facts)
            && (functions.isEmpty || facts.names.contains { functions.fit($0) })
    }

    private func fits(kinds found: Set<FrameKind>) -> Bool {
        kinds.isEmpty || kinds.contains { found.contains($0) }
    }

    /// A glob with a slash is for the whole path.
    private func fitsImage(of facts: FrameFacts) -> Bool {
        images.isEmpty
            || images.contains { glob in
                let name = glob.pattern.contains("/") ? facts.imagePath : facts.imageName
                return name.map(glob.matches) ?? false
            }
    }
}

extension [Glob] {
    /// Whether one of them fits; without any, everything does.
    func fit(_ name: String?) -> Bool {
        isEmpty || name.map { name in contains { $0.matches(name) } } ?? false
    }
}
