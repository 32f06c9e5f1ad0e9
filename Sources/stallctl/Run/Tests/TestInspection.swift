// Looks at the processes of tests that hang: the stacks of their threads and tasks, with functions and lines.

internal import Foundation
internal import Glibc
internal import StallInspection
internal import StallModel
internal import StallSymbols

/// A process that runs tests, at one instant.
struct InspectedTests {
    struct Thread {
        var facts: InspectedThread
        /// Innermost first.
        var frames: [Frame]
        /// The task that it runs.
        var task: UInt64?

        var hasLine: Bool { frames.first(where: \.isOwn)?.line.map { $0 > 0 } ?? false }
    }

    struct Task {
        var facts: InspectedTask
        var frames: [Frame]
    }

    let process: RunningProcess
    var threads: [Thread] = []
    var tasks: [Task] = []
    let inspected: InspectedProcess

    init(_ running: RunningProcess, findsLines: Bool = true, findsTasks: Bool = true) {
        process = running
        let inspected = InspectedProcess(running.id)
        self.inspected = inspected
        var seen = inspected.threadIDs.compactMap { inspected.thread($0) }
        // Not every instruction of a loop has a line.
        for thread in seen where thread.isRunning && findsLines {
            seen += (1..<Self.samplesOfRunning).compactMap { _ in
                usleep(2000)
                return inspected.thread(thread.id.rawValue).flatMap { $0.isRunning ? $0 : nil }
            }
        }
        let tasks = findsTasks ? inspected.tasks() : []
        var locations: [[CodeLocation]] = []
        func located(_ addresses: [CodeAddress]) -> [CodeLocation] {
            addresses.map {
                CodeLocation($0, in: inspected.image(containing: $0.lookupAddress))
            }
        }
        locations = seen.map { located($0.stack?.addresses ?? []) }
        locations += tasks.map { located($0.stack) }
        let frames = Self.frames(of: locations, inspected.images, findsLines)
        let isRunning = Set(tasks.filter { $0.state == .running }.map(\.address))
        let all = zip(seen, frames).map { thread, frames in
            // Nearest to the function that runs jobs is the outermost of them.
            Thread(
                facts: thread, frames: frames, task: thread.words.last(where: isRunning.contains))
        }
        threads = Self.best(of: all)
        self.tasks = zip(tasks, frames.dropFirst(seen.count)).map { Task(facts: $0, frames: $1) }
    }

    private static let samplesOfRunning = 5

    /// One of each thread: the first with a line in the innermost function of the package.
    private static func best(of threads: [Thread]) -> [Thread] {
        var best: [ThreadID: Thread] = [:]
        for thread in threads {
            guard let other = best[thread.facts.id] else {
                best[thread.facts.id] = thread
                continue
            }
            if !other.hasLine, thread.hasLine { best[thread.facts.id] = thread }
        }
        return best.values.sorted { $0.facts.id.rawValue < $1.facts.id.rawValue }
    }

    private static func frames(of stacks: [[CodeLocation]], _ images: [Image], _ findsLines: Bool)
        -> [[Frame]]
    {
        var options = SymbolizerOptions()
        options.findsLines = findsLines
        options.debugInformationLimit = 1 << 30
        options.budget = .seconds(20)
        // The program's own lines first: it was mapped at the lowest address, or is the only one with tests.
        let ordered =
            images.filter { $0.path.hasSuffix(".xctest") }
            + images.filter { !$0.path.hasSuffix(".xctest") && $0.path != "[vdso]" }
        let found = Symbolizer(options: options, decompressor: decompressSection).frames(
            for: Array(Set(stacks.joined())), images: ImageTable(images: ordered))
        return stacks.map { $0.flatMap { found[$0] ?? [] } }
    }
}
