import CLinux
import Testing

/// Goal: a note belongs to its task only, wherever it runs, and is removed from the table at the end of the scope.
/// Method: tasks set notes and read those of others by their addresses.
@Suite struct TaskNoteTests {
    /// Sets the calling task's note; returns the one before.
    func set(_ note: String) -> String {
        var note = note
        var before = [CChar](repeating: 0, count: 64)
        note.withUTF8 { bytes in
            bytes.withMemoryRebound(to: CChar.self) {
                _ = stall_task_note_set($0.baseAddress, UInt32($0.count), &before)
            }
        }
        return before.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
    }

    func note(of task: UInt64) -> String? {
        var text = [CChar](repeating: 0, count: 64)
        guard stall_task_note_read(task, &text) else { return nil }
        return text.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
    }

    @Test func `notes nest, and the last one leaves nothing behind`() async {
        let task = stall_task_current()
        #expect(task != 0)
        #expect(set("outer") == "")
        #expect(set("inner") == "outer")
        await Task.yield()
        #expect(stall_task_current() == task)
        #expect(note(of: task) == "inner")
        #expect(set("outer") == "inner")
        #expect(set("") == "outer")
        #expect(note(of: task) == nil)
    }

    @Test func `a note is cut at a character, and is no other task's`() async {
        let task = stall_task_current()
        _ = set(String(repeating: "ü", count: 40))
        #expect(note(of: task) == String(repeating: "ü", count: 31))
        let other = await Task.detached { (stall_task_current(), note(of: stall_task_current())) }
            .value
        #expect(other.0 != task && other.1 == nil)
        _ = set("")
    }

    @Test func `hundreds of tasks have their notes at the same time`() async {
        await withTaskGroup(of: Bool.self) { group in
            for number in 0..<400 {
                group.addTask {
                    _ = set("task \(number)")
                    defer { _ = set("") }
                    for _ in 0..<20 {
                        await Task.yield()
                        if note(of: stall_task_current()) != "task \(number)" { return false }
                    }
                    return true
                }
            }
            for await isRight in group { #expect(isRight) }
        }
    }
}
