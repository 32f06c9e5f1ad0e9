// Answers that came before they were needed. A question to a cluster takes several statements; those that do not depend on
// each other's answers are sent at once, and the code that needs an answer asks for it as if none were there.

internal import StallHTTP

/// Answers by their query, each for one use: a caller that repeats a query wants its answer at that time.
final class AnswersAhead {
    private var answers: [HTTPRequest: [UInt8]] = [:]

    func contains(_ request: HTTPRequest) -> Bool { answers[request] != nil }

    func keep(_ answer: [UInt8], to request: HTTPRequest) { answers[request] = answer }

    func take(_ request: HTTPRequest) -> [UInt8]? { answers.removeValue(forKey: request) }

    /// Drops answers to all other requests.
    func retain(_ requests: [HTTPRequest]) {
        let requests = Set(requests)
        answers = answers.filter { requests.contains($0.key) }
    }
}
