import StallAnalysis
import StallModel
import StallQuery
import Testing

@testable import stallctl

/// Goal: what each key does on each page of `top --watch`, and what is on the screen then.
/// Method: state and key in, state and lines out. No terminal, no store, no clock.
@Suite final class WatchStateTests {
    var state = WatchState(order: .total, group: .signature)
    let group = WatchedGroup(key: .signature, signature: 7, title: "save()")

    func list(_ count: Int) -> WatchContent {
        WatchContent(
            header: ["title", "", "  # WHERE"], rows: (0..<count).map { "row \($0)" },
            targets: Array(repeating: .reports(group), count: count), footer: ["note"])
    }

    /// Presses keys one after the other; the effects.
    @discardableResult
    func press(
        _ keys: Key..., on content: WatchContent, height: Int = 5
    ) -> [WatchEffect] {
        keys.map { state.apply($0, to: content, height: height) }
    }

    @Test func `the cursor stays among the rows, and the window follows it`() {
        press(.up, .character("k"), on: list(20))
        #expect(state.view.cursor == 0 && state.view.top == 0)
        press(.down, .character("j"), .down, .down, .down, on: list(20))
        #expect(state.view.cursor == 5 && state.view.top == 1)
        press(.pageDown, on: list(20))
        #expect(state.view.cursor == 10 && state.view.top == 6)
        press(.end, on: list(20))
        #expect(state.view.cursor == 19 && state.view.top == 15)
        press(.down, .pageDown, on: list(20))
        #expect(state.view.cursor == 19 && state.view.top == 15)
        press(.pageUp, on: list(20))
        #expect(state.view.cursor == 14 && state.view.top == 10)
        press(.home, on: list(20))
        #expect(state.view.cursor == 0 && state.view.top == 0)
        // The store has fewer rows by the next reading.
        press(.end, on: list(20))
        state.settle(on: list(3), height: 5)
        #expect(state.view.cursor == 2 && state.view.top == 0)
        state.settle(on: list(0), height: 5)
        #expect(state.view.cursor == 0 && state.view.top == 0)
    }

    @Test func `Enter opens a group and then a report, and Esc leads back`() {
        press(.down, on: list(3))
        #expect(press(.enter, on: list(3)) == [.read])
        #expect(state.page == .reports(group) && state.view.cursor == 0)
        let reports = WatchContent(
            rows: ["a", "b"], targets: [.report("01"), .report("02")])
        #expect(press(.down, .enter, on: reports) == [.draw, .read])
        #expect(state.page == .report("02") && state.depth == 3)
        // A report is scrolled: there is nothing to open.
        let text = WatchContent(rows: (0..<12).map { "line \($0)" })
        #expect(press(.enter, on: text) == [.none])
        press(.pageDown, .down, on: text)
        #expect(state.view.top == 6)
        press(.end, on: text)
        #expect(state.view.top == 7)
        #expect(press(.character("q"), on: text) == [.read])
        #expect(state.page == .reports(group) && state.view.cursor == 1)
        #expect(press(.escape, on: reports) == [.read])
        #expect(state.page == .groups && state.view.cursor == 1)
        #expect(press(.escape, on: list(3)) == [.none])
        #expect(press(.character("q"), on: list(3)) == [.quit])
    }

    @Test func `Q quits from any page, and an empty list opens nothing`() {
        #expect(press(.enter, on: list(0)) == [.none])
        press(.enter, on: list(1))
        #expect(press(.character("Q"), on: list(1)) == [.quit])
    }

    @Test func `order and grouping are chosen on the ranking only`() {
        for (key, order) in [("c", RankingOrder.count), ("p", .p95), ("m", .max), ("r", .rate)] {
            press(.down, on: list(3))
            #expect(press(.character(Character(key)), on: list(3)) == [.read])
            #expect(state.order == order && state.view.cursor == 0)
        }
        for _ in GroupKey.allCases { press(.character("g"), on: list(3)) }
        #expect(state.group == .signature)
        #expect(press(.character("x"), on: list(3)) == [.none])
        press(.enter, on: list(3))
        #expect(press(.character("c"), .character("g"), on: list(3)) == [.none, .none])
        #expect(state.order == .rate && state.group == .signature)
    }

    @Test func `a filter hides rows, on its page, until Esc`() {
        let content = list(20)
        press(.character("/"), .character("1"), .character("q"), .backspace, on: content)
        #expect(state.isTyping && state.view.filter == "1")
        #expect(state.visible(in: content) == [1] + Array(10...19))
        press(.enter, .down, on: content)
        #expect(!state.isTyping && state.view.cursor == 1)
        // Enter opens the row that is shown there.
        var other = content
        other.targets[10] = .report("ten")
        press(.enter, on: other)
        #expect(state.page == .report("ten") && state.view.filter == "")
        press(.escape, on: content)
        #expect(state.view.filter == "1" && state.view.cursor == 1)
        #expect(press(.escape, on: content) == [.draw])
        #expect(state.view.filter == "" && state.page == .groups)
        // Case does not matter; Esc while typing clears.
        press(.character("/"), .character("R"), .character("O"), on: content)
        #expect(state.visible(in: content).count == 20)
        press(.escape, on: content)
        #expect(!state.isTyping && state.view.filter == "")
    }

    // MARK: the screen

    func screen(_ content: WatchContent, columns: Int?, notice: String? = nil) -> WatchScreen {
        var terminal = Terminal.plain
        terminal.columns = columns
        return WatchScreen(
            state: state, content: content, reading: "read at 14:03:22", notice: notice,
            terminal: terminal)
    }

    @Test(arguments: [1, 2, 5, 24], [20, 40, 80, 200])
    func `a screen has as many lines as the window, and fits it`(rows: Int, columns: Int) {
        var content = list(40)
        content.rows[1] += String(repeating: "x", count: 300)
        content.header[0] = "\u{1b}[1m" + String(repeating: "wide ", count: 60) + "\u{1b}[0m"
        let lines = screen(content, columns: columns).lines(rows: rows)
        #expect(lines.count == rows)
        #expect(lines.allSatisfy { $0.shownWidth <= columns })
        #expect(lines.last?.hasSuffix("q quit") == true)
    }

    @Test func `the selected row is marked, and the reading is dated`() {
        press(.down, on: list(4))
        let lines = screen(list(4), columns: 80, notice: "the store was replaced").lines(rows: 12)
        #expect(lines[3...6] == ["  row 0", "> row 1", "  row 2", "  row 3"])
        #expect(lines.contains("2 of 4; read at 14:03:22; the store was replaced"))
        #expect(lines.contains { $0.hasPrefix("[t total] c count") })
        #expect(lines.contains("note"))
        var colored = screen(list(4), columns: 80)
        colored.terminal.usesColor = true
        colored.content.rows[1] = "\u{1b}[1mrow 1\u{1b}[0m of many"
        #expect(colored.lines(rows: 12)[4] == "\u{1b}[7m> row 1 of many\u{1b}[0m")
    }

    @Test func `a text is shown from its first line in the window`() {
        press(.enter, on: WatchContent(rows: ["a"], targets: [.report("01")]))
        let text = WatchContent(rows: (0..<30).map { "line \($0)" })
        press(.down, .down, on: text, height: 8)
        let lines = screen(text, columns: 80).lines(rows: 10)
        #expect(lines[0] == "line 2" && lines.contains { $0.hasPrefix("line 3 of 30; read at") })
    }

    @Test func `what is typed is shown, and never steers the terminal`() {
        press(.character("/"), .character("\u{202e}"), .character("é"), on: list(2))
        let lines = screen(list(2), columns: 80).lines(rows: 8)
        #expect(lines.contains("/\\u{202E}é_"))
    }
}

/// Goal: the keys of real terminals are known, however their bytes arrive.
/// Method: the sequences that xterm sends, whole and in pieces.
@Suite struct KeyDecoderTests {
    @Test(
        arguments: [
            ("a", [.character("a")]), ("é日", [.character("é"), .character("日")]),
            ("\u{1b}[A\u{1b}OB", [.up, .down]), ("\u{1b}[5~\u{1b}[6~", [.pageUp, .pageDown]),
            ("\u{1b}[H\u{1b}[4~", [.home, .end]), ("\u{1b}[1;5A", [.up]),
            ("\r\n\u{7f}", [.enter, .enter, .backspace]), ("\u{1b}[24~x", [.character("x")]),
            ("\u{1b}q", [.escape, .character("q")]), ("\u{1}\u{7}", []),
        ] as [(String, [Key])])
    func `bytes are keys, whole or one by one`(text: String, keys: [Key]) {
        var decoder = KeyDecoder()
        decoder.add(text.utf8)
        var found: [Key] = []
        while let key = decoder.next(isComplete: false) { found.append(key) }
        #expect(found == keys && decoder.isEmpty)

        found = []
        for byte in text.utf8 {
            decoder.add([byte])
            while let key = decoder.next(isComplete: false) { found.append(key) }
        }
        #expect(found == keys)
    }

    @Test func `an escape alone is a key once nothing follows`() {
        var decoder = KeyDecoder()
        decoder.add([0x1b])
        let early = decoder.next(isComplete: false)
        #expect(early == nil && !decoder.isEmpty)
        let late = decoder.next(isComplete: true)
        #expect(late == .escape)
        // What never ends is no key, and does not keep later ones.
        decoder.add("\u{1b}[1;1;1;1;1;1;1;1;1;1;1".utf8)
        let endless = decoder.next(isComplete: false)
        #expect(endless == nil && decoder.isEmpty)
    }
}
