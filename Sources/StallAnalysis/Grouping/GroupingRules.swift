// The rules that reports are grouped by: the user's, then the built-in ones of Rules/builtin.rules. The first matching
// rule decides.

internal import StallModel
internal import StallQuery

/// Rules in order of precedence.
package struct GroupingRules: Sendable {
    /// Only the built-in rules.
    package static let builtIn: GroupingRules = {
        do {
            return try GroupingRules(user: nil)
        } catch {
            fatalError("\(error)")  // built-in rules; every test parses them
        }
    }()

    /// Changes with the content of any rule, not with comments and spaces.
    package let hash: Int64
    /// The file of the user's rules; nil if there are none.
    package let file: String?
    /// The text of that file; empty if there is none.
    package let text: String
    /// The user's merges and splits; the first that matches a group decides.
    let groupRules: [GroupingRule]
    /// The rules of what may block, as the agent takes them.
    package let allowed: [String]
    private let frameRules: [GroupingRule]
    /// Rules with only a function name without wildcards, by that name.
    private let byFunction: [String: [Int]]
    /// All other rules, which are tried in order.
    private let tried: [Int]

    /// The user's rules before the built-in ones.
    ///
    /// - Parameters:
    ///   - text: The contents of a rules file.
    ///   - file: Its name in error messages.
    package init(_ text: String, file: String) throws(RulesError) {
        // Otherwise a store that is grouped by them could not keep them.
        guard text.utf8.count <= StoredRules.longestText else {
            let line = text.utf8.prefix(StoredRules.longestText).count { $0 == UInt8(ascii: "\n") }
            throw RulesError(
                file: file, line: line + 1, found: "\(text.utf8.count) bytes",
                expected: "at most \(StoredRules.longestText) bytes of rules")
        }
        try self.init(user: RulesText(text, file: file), text: text, file: file)
    }

    private init(user: RulesText?, text: String = "", file: String? = nil) throws(RulesError) {
        let builtIn = try RulesText(
            String(decoding: PackageResources.builtin_rules, as: UTF8.self), file: nil)
        let rules = (user?.rules ?? []) + builtIn.rules
        (self.text, self.file) = (text, file)
        groupRules = rules.filter(\.isForGroups)
        allowed = rules.compactMap(\.allowed)
        frameRules = rules.filter { !$0.isForGroups && $0.action != .allow }
        var byFunction: [String: [Int]] = [:]
        var tried: [Int] = []
        for (index, rule) in frameRules.enumerated() {
            guard rule.namesFunctionsOnly else {
                tried.append(index)
                continue
            }
            for name in rule.functions.compactMap(\.literal) {
                byFunction[name, default: []].append(index)
            }
            if rule.functions.contains(where: { $0.literal == nil }) { tried.append(index) }
        }
        self.byFunction = byFunction
        self.tried = tried
        var hash = ContentHash()
        hash.combine(signatureVersion)
        hash.combine(classificationVersion)
        for words in builtIn.words + (user?.words ?? []) {
            hash.combine(UInt64(words.count))
            for word in words { hash.combine(word) }
        }
        self.hash = hash.value
    }

    /// Of the rules that are tried in order, those that functions of a Swift module in an image may fit, by what else
    /// they select. Only C has no module.
    func candidates(imagePath: String?, imageName: String?, module: String?) -> [Int] {
        tried.filter {
            frameRules[$0].modules.fit(module)
                && frameRules[$0].fitsImage(path: imagePath, name: imageName)
        }
    }

    /// Calls `body` with the rules that match the frame, in order, until it returns that it is done.
    ///
    /// - Parameter candidates: Those of the frame's image and module.
    func forEachFitting(
        _ facts: FrameFacts, among candidates: [Int], _ body: (GroupingRule) -> Bool
    ) {
        // Built-in names without `::` are C functions.
        let named = facts.names.flatMap { name in
            (byFunction[name] ?? []).filter {
                !facts.isMangled || frameRules[$0].file != nil || name.contains("::")
            }
        }.sorted()
        var next = 0
        for index in candidates {
            while next < named.count, named[next] <= index {
                if body(frameRules[named[next]]) { return }
                next += 1
            }
            if frameRules[index].fitsFunction(of: facts), body(frameRules[index]) { return }
        }
        for index in named[next...] where body(frameRules[index]) { return }
    }
}

extension GroupingRule {
    fileprivate var isForGroups: Bool {
        switch action {
        case .merge, .split: true
        default: false
        }
    }

    /// As the agent takes it; nil if it is not of what may block.
    fileprivate var allowed: String? {
        guard action == .allow else { return nil }
        let selectors =
            images.map { "image \($0.pattern)" } + functions.map { "function \($0.pattern)" }
        return selectors.joined(separator: "\t")
    }

    fileprivate var namesFunctionsOnly: Bool {
        images.isEmpty && modules.isEmpty && kinds.isEmpty && !functions.isEmpty
    }
}
