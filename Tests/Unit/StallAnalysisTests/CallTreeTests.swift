import StallModel
import StallQuery
import TestSupport
import Testing

@testable import StallAnalysis

/// Goal: a tree holds all the time that was lost, each call with the part that was spent under it.
/// Method: a few stacks whose sums can be done by hand; then random ones against sums over all stacks.
@Suite struct CallTreeTests {
    let stacks: [Int64: [Frame]] = [
        1: frames("usleep <- sleepy() <- tick() <- StallRunLoop/EventRunLoop.run() <- main"),
        2: frames(
            "Swift/Array.sort() <- layout(_:) <- tick() <- StallRunLoop/EventRunLoop.run() <- main"),
        3: frames(
            "swift_retain <- layout(_:) <- layout(_:) <- other() <- StallRunLoop/EventRunLoop.run() <- main"
        ),
    ]

    /// Stalls with these durations in milliseconds, with the weights of their stacks.
    private func stalls(_ stalls: [(lasting: Int, stacks: [Int64: Int])]) -> StackSets {
        stalls.reduce(into: StackSets()) { sets, stall in
            sets.add(
                stall.stacks.sorted { $0.key < $1.key }
                    .map { WeightedStack(stack: $0, weight: .milliseconds($1)) },
                lasting: .milliseconds(stall.lasting), executable: nil)
        }
    }

    private func lines(
        _ direction: TreeDirection, _ selection: TreeSelection = TreeSelection()
    ) -> [String] {
        let tree = CallTree(
            stalls([(1000, [1: 800]), (400, [2: 100, 3: 300]), (100, [2: 1]), (50, [:])]),
            frames: stacks, direction: direction, selection: selection)
        func lines(_ node: Int) -> [String] {
            let found = tree.nodes[node]
            let line = "\(found.function) \(Int(found.time.milliseconds)) \(found.count)"
            return [String(repeating: ".", count: found.depth) + line]
                + tree.children(of: node).flatMap(lines)
        }
        let sum = tree.roots.reduce(tree.withoutStack) { $0 + tree.nodes[$1].time }
        #expect(sum == tree.total)
        return tree.roots.flatMap(lines) + ["\(tree.stallCount) \(Int(tree.total.milliseconds))"]
    }

    @Test func `callees above callers, without what runs loops`() {
        #expect(
            lines(.bottomUp) == [
                "usleep 1000 1", ".sleepy() 1000 1", "..tick() 1000 1",
                "layout(_:) 300 1", ".other() 300 1",
                "Array.sort() 200 2", ".layout(_:) 200 2", "..tick() 200 2", "4 1550",
            ])
    }

    @Test func `callers above callees`() {
        #expect(
            lines(.topDown) == [
                "tick() 1200 3", ".sleepy() 1000 1", "..usleep 1000 1", ".layout(_:) 200 2",
                "..Array.sort() 200 2", "other() 300 1", ".layout(_:) 300 1", "4 1550",
            ])
    }

    @Test func `a tree of some stacks holds their time only`() {
        var selection = TreeSelection()
        selection.focus = [NamePattern("layout")]
        selection.ignore = [NamePattern("oth?r()")]
        #expect(
            lines(.topDown, selection) == [
                "tick() 200 2", ".layout(_:) 200 2", "..Array.sort() 200 2", "2 200",
            ])
    }

    @Test func `all frames are shown when all are asked for`() {
        var selection = TreeSelection()
        selection.frames = .all
        #expect(lines(.topDown, selection).contains("main 1500 3"))
        #expect(lines(.topDown, selection).contains { $0.contains("swift_retain") })
    }

    @Test func `a tree of the app's functions gives them the time of what they called`() {
        var selection = TreeSelection()
        selection.frames = .app
        #expect(
            lines(.bottomUp, selection) == [
                "sleepy() 1000 1", ".tick() 1000 1", "layout(_:) 500 2", ".other() 300 1",
                ".tick() 200 2", "4 1550",
            ])
    }

    @Test func `a name is a part of one, or a pattern for all of it`() {
        #expect(NamePattern("lay").fits("layout(_:)") && !NamePattern("lay*x").fits("layout(_:)"))
        #expect(NamePattern("lay*").fits("layout(_:)") && !NamePattern("ay*").fits("layout(_:)"))
    }

    @Test func `equal stalls are counted like one after the other`() {
        let one: [(lasting: Int, stacks: [Int64: Int])] = [(400, [2: 100, 3: 300]), (100, [2: 1])]
        let tree = CallTree(
            stalls(one + one + one), frames: stacks, direction: .topDown)
        let once = CallTree(stalls(one), frames: stacks, direction: .topDown)
        #expect(stalls(one + one).entries.count == 2)
        #expect(tree.nodes.map(\.count) == once.nodes.map { $0.count * 3 })
        #expect(tree.nodes.map(\.time) == once.nodes.map { $0.time * 3 })
        #expect(tree.stallCount == 6 && tree.total == once.total * 3)
    }

    /// A generic function of one module is compiled into each image that uses it.
    @Test(arguments: ["same()", "App.same()"])
    func `a function in two images has a row for each, in whatever order they come`(name: String) {
        func frame(_ image: String) -> [Frame] {
            var frame = frames("same()")[0]
            frame.imagePath = "/usr/lib/\(image)"
            if name != "same()" { frame.rawName = "$s3App4sameyyF" }
            return [frame]
        }
        let stacks: [Int64: [Frame]] = [1: frame("libb.so"), 2: frame("liba.so")]
        for order in [[1, 2], [2, 1]] as [[Int64]] {
            let tree = CallTree(
                stalls(order.map { (5, [$0: 5]) }), frames: stacks, direction: .bottomUp)
            #expect(tree.roots.map { tree.nodes[$0].image } == ["liba.so", "libb.so"])
            #expect(tree.roots.allSatisfy { tree.nodes[$0].time == .milliseconds(5) })
        }
    }

    @Test func `the deepest stack makes a tree`() {
        let names = (0..<5000).map { "f\($0)()" }.joined(separator: " <- ")
        let tree = CallTree(
            stalls([(5, [9: 5])]), frames: [9: frames(names)], direction: .bottomUp)
        #expect(tree.nodes.count == 5000 && tree.nodes.last?.depth == 4999)
    }
}
