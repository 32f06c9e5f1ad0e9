// Authorization and rate limits by token.

internal import Synchronization

extension Collector {
    /// The token of a request, if it has the right.
    func token(
        of request: CollectorRequest, _ right: TokenRight
    ) async throws(CollectorRefusal) -> CollectorToken {
        guard let text = request.token, text.utf8.count <= 256 else {
            throw fail(request, "a token is needed: Authorization: Bearer TOKEN")
        }
        let now = seconds()
        await refreshTokens(at: now)
        var found = tokenFile.tokens.token(text)
        if found == nil {
            // The owner of a token is never kept waiting by clients at the same address that have none.
            guard !rates.withLock({ $0.failures.isExhausted(request.peer, at: now) }) else {
                throw .init(429, "too many requests without a valid token", retryAfter: 1)
            }
            // It may have been added just now.
            await refreshTokens(at: nil)
            found = tokenFile.tokens.token(text)
        }
        guard let token = found else { throw fail(request, "the token is not known") }
        guard token.right == right else {
            throw .init(403, "the token is for \(token.right.rawValue), not for \(right.rawValue)")
        }
        if let wait = rates.withLock({ $0.tokens.take(token.id, at: now) }) {
            throw .init(429, "too many requests with this token", retryAfter: wait)
        }
        return token
    }

    private func fail(_ request: CollectorRequest, _ reason: String) -> CollectorRefusal {
        let now = seconds()
        _ = rates.withLock { $0.failures.take(request.peer, at: now) }
        return CollectorRefusal(401, reason)
    }

    /// Looks whether the file of tokens has changed: once a second, or now.
    private func refreshTokens(at now: Double?) async {
        if let now {
            let isDue = rates.withLock { rates in
                guard rates.lastRefresh < 0 || now - rates.lastRefresh >= 1 else { return false }
                rates.lastRefresh = now
                return true
            }
            guard isDue else { return }
        }
        let (file, log) = (tokenFile, log)
        _ = await nextThread().answer {
            if let problem = file.refresh() {
                log.add("the tokens are those of before: \(problem)")
            }
        }
    }

    func nextThread() -> WorkThread {
        rates.withLock {
            $0.nextThread = ($0.nextThread + 1) % readThreads.count
            return readThreads[$0.nextThread]
        }
    }
}
