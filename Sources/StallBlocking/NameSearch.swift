// The names of what the calls of tests are at. Debug information is read on a thread of its own: on the pool's few threads other
// tests run, whose timeouts would pass meanwhile.

internal import CLinux
internal import Glibc
internal import StallModel
internal import StallSymbols
internal import Synchronization

/// Finds the frames at code locations, for all tests that wait at a time together.
final class NameSearch: Sendable {
    typealias Names = [CodeLocation: [Frame]]

    static let shared = NameSearch()

    private struct Question {
        let locations: Set<CodeLocation>
        let answer: CheckedContinuation<Names, Never>
    }

    private struct State {
        var questions: [Question] = []
        var hasThread = false
        /// Many tests call the same functions.
        var known: Names = [:]
    }

    private let state = Mutex(State())

    /// The frames at each location, as far as the debug information is read in five seconds.
    func names(at locations: Set<CodeLocation>) async -> Names {
        await withCheckedContinuation { answer in
            let needsThread = state.withLock { state in
                state.questions.append(Question(locations: locations, answer: answer))
                defer { state.hasThread = true }
                return !state.hasThread
            }
            if needsThread, !startThread() { answerAll() }
        }
    }

    private func startThread() -> Bool {
        let error = stall_thread_start_detached(
            "test-names",
            { _ in
                // On Linux of this thread alone: the tests that still run have the CPU first.
                _ = nice(10)
                NameSearch.shared.answerAll()
                return nil
            }, nil)
        return error == 0
    }

    private func answerAll() {
        while let (questions, known) = takeQuestions() {
            var names = known
            let wanted = Set(questions.flatMap(\.locations)).subtracting(known.keys)
            if !wanted.isEmpty {
                let found = Symbolizer().resolve(
                    Array(wanted), images: .current(), budget: .seconds(5))
                names.merge(found.frames) { first, _ in first }
                let finished = found.frames.filter { !found.unfinished.contains($0.key) }
                state.withLock { $0.known.merge(finished) { first, _ in first } }
            }
            for question in questions { question.answer.resume(returning: names) }
        }
    }

    private func takeQuestions() -> ([Question], known: Names)? {
        state.withLock { state in
            guard !state.questions.isEmpty else {
                state.hasThread = false
                return nil
            }
            defer { state.questions = [] }
            return (state.questions, state.known)
        }
    }
}
