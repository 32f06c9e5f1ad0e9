// A report of hung tests as text, for people who read a log.

internal import StallModel

extension HangReport {
    var textLines: [String] {
        var lines = ["stallctl: " + sentence]
        for test in tests { lines += [""] + test.textLines }
        for process in processes { lines += [""] + textLines(of: process) }
        return lines.map(\.printable)
    }

    private func textLines(of process: ExaminedProcess) -> [String] {
        let name = process.command.split(separator: "/").last.map(String.init) ?? "?"
        let title = "  Process \(process.id) '\(name)'"
        if let failure = process.failure { return [title + " cannot be examined: \(failure)"] }
        guard !process.busy.isEmpty else { return [] }
        let waiting =
            process.enqueuedCount == 0
            ? "" : "; \(process.enqueuedCount) tasks could run and have no thread"
        let count = "\(process.busy.count) of \(process.poolSize)"
        var lines = [title + ": \(count) threads of the concurrency pool run a task\(waiting)"]
        for thread in process.busy {
            let test = test(of: thread.id)
            let position = thread.place.map { " at \($0.file):\($0.line)" } ?? ""
            lines.append(
                "    thread \(thread.id.rawValue)" + (test.map { ": \($0.description.name)" } ?? "")
                    + position + "; " + thread.wait.sentence)
        }
        return lines
    }
}

extension HangReport.HungTest {
    /// `Tests/A.swift:6`, or as much of it as is known.
    var place: String? {
        guard let file = description.path ?? description.fileID else { return nil }
        return description.line.map { "\(file):\($0)" } ?? file
    }

    var title: String { description.name + (place.map { " at " + $0 } ?? "") }

    var textLines: [String] {
        var lines = ["  Test \(title)" + (elapsed.map { ", for \($0.compact)" } ?? "")]
        if !cases.isEmpty { lines.append("    cases: " + cases.joined(separator: ", ")) }
        for thread in threads { lines += thread.textLines }
        for task in tasks { lines += task.textLines(indent: "    ") }
        if isExamined, threads.isEmpty, tasks.isEmpty {
            lines.append(
                waitsForPool
                    ? "    it has not begun: all threads of the concurrency pool are held"
                    : "    no thread and no task of it was found")
        }
        return lines
    }
}

extension BlockedThread {
    fileprivate var textLines: [String] {
        ["    thread \(id.rawValue) '\(name)': \(wait.sentence)"]
            + frames.textLines(indent: "      ")
    }
}

extension WaitingTask {
    fileprivate func textLines(indent: String) -> [String] {
        let what =
            thread.map { "runs on thread \($0.rawValue)" }
            ?? (isEnqueued
                ? "ready to run: no thread has it; it waits for \(awaits)"
                : "suspended: no thread has it; it awaits \(awaits)")
        return [indent + "task \(id) " + what] + frames.textLines(indent: indent + "  ")
            + awaited.flatMap { $0.textLines(indent: indent + "  ") }
    }
}

extension [Frame] {
    /// One line a frame: those of the package with their lines, the others by name.
    fileprivate func textLines(indent: String) -> [String] {
        map { frame in
            let place = frame.isOwn ? frame.placeText.map { " at " + $0 } : nil
            return indent + frame.title + (place ?? "")
        }
    }
}
