// A reader's question, on threads of its own.

internal import Synchronization

extension Collector {
    func ask(
        _ kind: ReadQuestion.Kind, _ request: CollectorRequest
    ) async throws(CollectorRefusal) -> CollectorAnswer {
        let token = try await token(of: request, .read)
        guard let reader else { throw .init(404, "no such path") }
        guard let parameters = ReadQuestion.parameters(of: request.target) else {
            throw .init(400, "the query is not UTF-8 in percent encoding")
        }
        let question = ReadQuestion(
            kind: kind, parameters: parameters,
            apps: token.apps.contains("*") ? [] : token.apps)
        guard
            let thread = rates.withLock({ rates -> WorkThread? in
                guard rates.asking < limits.readers * 4 else { return nil }
                rates.asking += 1
                return askThreads[rates.asking % askThreads.count]
            })
        else { throw .init(503, "too many questions at once", retryAfter: 2) }
        defer { rates.withLock { $0.asking -= 1 } }
        let answer = await thread.answer { Result { try reader.answer(question) } }
        switch answer {
        case .success(.lines(let lines)):
            return CollectorAnswer(
                200, type: "application/x-ndjson", lines.map { $0 + "\n" }.joined())
        case .success(.page(let page, let policy)):
            var answer = CollectorAnswer(200, type: "text/html; charset=utf-8", "")
            answer.body = page
            answer.fields.append(("content-security-policy", policy))
            return answer
        case .success(.nothing(let reason)): throw .init(404, reason)
        case .failure(let error as ReadQuestionError): throw .init(400, error.description)
        case .failure(let error):
            log.add("a question could not be answered: \(error)")
            throw .init(503, "the store cannot be read", retryAfter: 10)
        case nil: throw Self.stopping
        }
    }
}
