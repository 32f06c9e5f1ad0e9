// The content of `top --watch`, as decided by keys. Pure: a key and the content of the screen give the next state;
// WatchScreen.swift renders it, WatchReader.swift reads the store.

internal import StallAnalysis
internal import StallModel
internal import StallQuery

/// The page whose rows are shown.
enum WatchPage: Equatable {
    /// The ranking.
    case groups
    /// The reports of a group, under the key that it was ranked by.
    case reports(WatchedGroup)
    /// One report in full, by its id.
    case report(String)
}

/// A group of the ranking, by what identifies it in the next reading.
struct WatchedGroup: Equatable {
    var key: GroupKey
    var signature: Int64
    var title: String
}

/// The content of a page, from one reading of the store.
struct WatchContent: Equatable {
    /// Above the rows: sentences, then the columns' titles.
    var header: [String] = []
    /// Rendered for the window.
    var rows: [String] = []
    /// The pages that Enter opens, row by row; empty if the page is only scrolled.
    var targets: [WatchPage] = []
    /// Below the rows.
    var footer: [String] = []

    var isList: Bool { !targets.isEmpty }
}

/// The program's action after a key.
enum WatchEffect: Equatable {
    /// Nothing: the key has no meaning here.
    case none
    /// Draws the screen again.
    case draw
    /// Reads the store again: other rows are shown.
    case read
    case quit
}

struct WatchState: Equatable {
    /// A page, and where the user is on it.
    struct View: Equatable {
        var page: WatchPage
        /// The selected row of a list, or the first line of a text; among the rows that the filter leaves.
        var cursor = 0
        /// The first row in the window.
        var top = 0
        /// Rows without this text are hidden; empty for all rows.
        var filter = ""
    }

    var order: RankingOrder
    var group: GroupKey
    /// The pages from the ranking to the one that is shown. Never empty.
    private(set) var views = [View(page: .groups)]
    /// Whether keys go to the filter.
    private(set) var isTyping = false

    init(order: RankingOrder, group: GroupKey) {
        self.order = order
        self.group = group
    }

    var view: View {
        get { views[views.count - 1] }
        set { views[views.count - 1] = newValue }
    }

    var page: WatchPage { view.page }
    /// 1 for the ranking.
    var depth: Int { views.count }

    /// The indices of the rows that the filter leaves.
    func visible(in content: WatchContent) -> [Int] {
        let filter = view.filter.lowercased()
        guard !filter.isEmpty else { return Array(content.rows.indices) }
        return content.rows.indices.filter {
            content.rows[$0].withoutStyles.lowercased().contains(filter)
        }
    }

    /// Applies a key.
    ///
    /// - Parameters:
    ///   - content: The content of the screen.
    ///   - height: How many rows of it fit.
    mutating func apply(_ key: Key, to content: WatchContent, height: Int) -> WatchEffect {
        let effect = isTyping ? edit(key) : command(key, content, height)
        // After the others, this content is not that of the page any more.
        if effect == .draw { settle(on: content, height: height) }
        return effect
    }

    /// Keeps cursor and window within the rows: the store may have fewer by now, and the window be another size.
    mutating func settle(on content: WatchContent, height: Int) {
        let count = visible(in: content).count
        let height = max(height, 1)
        if content.isList {
            view.cursor = max(0, min(view.cursor, count - 1))
            view.top = max(view.cursor - height + 1, min(view.top, view.cursor))
            view.top = max(0, min(view.top, count - height))
        } else {
            view.cursor = max(0, min(view.cursor, count - height))
            view.top = view.cursor
        }
    }

    // MARK: keys

    private mutating func edit(_ key: Key) -> WatchEffect {
        switch key {
        case .character(let character):
            view.filter.append(character)
            view.cursor = 0
        case .backspace:
            if view.filter.isEmpty { isTyping = false } else { view.filter.removeLast() }
        case .enter: isTyping = false
        case .escape:
            view.filter = ""
            isTyping = false
        case .up, .down, .pageUp, .pageDown, .home, .end: return .none
        }
        return .draw
    }

    private mutating func command(
        _ key: Key, _ content: WatchContent, _ height: Int
    ) -> WatchEffect {
        let count = visible(in: content).count
        switch key {
        case .up, .character("k"): view.cursor -= 1
        case .down, .character("j"): view.cursor += 1
        case .pageUp, .character("b"): move(-height)
        case .pageDown, .character("f"): move(height)
        case .home: view.cursor = 0
        case .end: view.cursor = count
        case .character("/"): isTyping = true
        case .character(" "): return .read
        case .character("Q"): return .quit
        case .enter, .character("l"): return open(content)
        case .escape, .backspace, .character("h"): return back()
        case .character("q"): return views.count == 1 ? .quit : back()
        case .character(let character): return page == .groups ? choose(character) : .none
        }
        return .draw
    }

    private mutating func move(_ rows: Int) {
        view.cursor += rows
        view.top += rows
    }

    /// Enter on a row.
    private mutating func open(_ content: WatchContent) -> WatchEffect {
        let rows = visible(in: content)
        guard content.isList, rows.indices.contains(view.cursor) else { return .none }
        views.append(View(page: content.targets[rows[view.cursor]]))
        return .read
    }

    /// First the filter goes, then the page.
    private mutating func back() -> WatchEffect {
        if !view.filter.isEmpty {
            view.filter = ""
            return .draw
        }
        guard views.count > 1 else { return .none }
        views.removeLast()
        return .read
    }

    /// Order and grouping of the ranking.
    private mutating func choose(_ character: Character) -> WatchEffect {
        switch character {
        case "t": order = .total
        case "c": order = .count
        case "p": order = .p95
        case "m": order = .max
        case "r": order = .rate
        case "g":
            group = group.following
            // A filter that fitted the old names would hide the new ones.
            view.filter = ""
        default: return .none
        }
        (view.cursor, view.top) = (0, 0)
        return .read
    }
}

extension GroupKey {
    fileprivate var following: GroupKey {
        let all = Self.allCases
        return all[(all.firstIndex(of: self)! + 1) % all.count]
    }
}
