// The next step after an answer. Pure: it gets the answer, and does not wait.
//
//     200 stored, if the answer says up to where   409 continue from there   413 half as much   422 without these lines
//     408 425 429 5xx, or no answer: later         everything else: stop, since the answer would be the same

package import StallHTTP
import StallModel
package import StallQuery

/// How far a collector has a store.
package struct CollectorPosition: Hashable, Sendable, Decodable {
    package struct Report: Hashable, Sendable, Decodable {
        package var seq: Int64
        package var id: String
    }
    package var through: Int64
    /// The newest report until then.
    package var last: Report?

    /// No store gives out more numbers.
    static let range = 0...Int64(1) << 60
    var isPossible: Bool { Self.range.contains(through) }
}

/// The step after the answer to the question for the position.
package enum PositionStep: Hashable, Sendable {
    case known(CollectorPosition)
    case wait(reason: String, seconds: Int?)
    case stop(reason: String)

    package init(_ reply: HTTPReply) {
        switch PushStep.common(reply) {
        case .wait(let reason, let seconds): self = .wait(reason: reason, seconds: seconds)
        case .stop(let reason): self = .stop(reason: reason)
        default:
            guard case .answer(let answer) = reply, answer.status == 200 else {
                self = .stop(reason: "answered something else than a position")
                return
            }
            if let position = answer.object(CollectorPosition.self), position.isPossible {
                self = .known(position)
            } else {
                // A proxy, or another service.
                self = .wait(
                    reason: "answered 200 without a position\(answer.words)", seconds: nil)
            }
        }
    }
}

/// The step after the answer to a batch.
package enum PushStep: Hashable, Sendable {
    /// The batch is committed.
    case stored(added: Int, changed: Int)
    /// Something is missing at the other side: continue from here.
    case resume(through: Int64)
    /// The batch is too large.
    case halve
    /// Send it again without these lines.
    case leaveOut([LineFault])
    /// Send it again, later.
    case wait(reason: String, seconds: Int?)
    case stop(reason: String)

    /// - Parameters:
    ///   - through: Where the batch ends.
    ///   - lineCount: How many lines it has.
    package init(_ reply: HTTPReply, through: Int64, lineCount: Int) {
        guard case .answer(let answer) = reply else {
            self = Self.common(reply) ?? .stop(reason: "no answer")
            return
        }
        switch answer.status {
        case 200:
            // One that does not say up to where did not store it: a proxy, or a page that says hello.
            guard let stored = answer.object(Stored.self), stored.through >= through else {
                self = .wait(reason: "answered 200 and did not store the batch", seconds: nil)
                return
            }
            let counts = 0...max(0, lineCount)
            self = .stored(
                added: (stored.added ?? 0).clamped(to: counts),
                changed: (stored.changed ?? 0).clamped(to: counts))
        case 409:
            guard let position = answer.object(CollectorPosition.self), position.isPossible else {
                self = .stop(reason: "answered 409 without a position")
                return
            }
            self = .resume(through: position.through)
        case 413: self = .halve
        case 422:
            // Of a batch without lines, none is; and each is refused once, however often it is named.
            var named = Set<Int>()
            let faults = (answer.object(Faults.self)?.all ?? []).filter {
                $0.line >= 1 && $0.line <= lineCount && named.insert($0.line).inserted
            }
            self =
                faults.isEmpty
                ? .stop(reason: "answered 422 without a line of the batch\(answer.words)")
                : .leaveOut(faults)
        default: self = Self.common(reply) ?? .stop(reason: "answered \(answer.status)")
        }
    }

    /// The step that is the same for every request; nil for a status that the request has to handle.
    static func common(_ reply: HTTPReply) -> PushStep? {
        switch reply {
        case .failed(let reason), .timedOut(let reason): return .wait(reason: reason, seconds: nil)
        case .refused(let reason): return .stop(reason: reason)
        case .answer(let answer):
            switch answer.status {
            case 200, 409, 413, 422: return nil
            case 408, 425, 429, 500...599:
                return .wait(
                    reason: "answered \(answer.status)\(answer.words)", seconds: answer.retryAfter)
            case 300...399:
                let place = answer.fields["location"].map { " to \($0.prefix(200))" } ?? ""
                return .stop(
                    reason: "redirects\(place), which is not followed: give that address itself")
            case 401, 403:
                return .stop(
                    reason: "refused the token (\(answer.status))\(answer.words)")
            default: return .stop(reason: "answered \(answer.status)\(answer.words)")
            }
        }
    }

    private struct Stored: Decodable {
        var through: Int64
        var added: Int?
        var changed: Int?
    }

    private struct Faults: Decodable {
        struct Fault: Decodable {
            var line: Int
            var error: String?
        }
        var line: Int?
        var error: String?
        var lines: [Fault]?

        var all: [LineFault] {
            let first = line.map { [Fault(line: $0, error: error)] } ?? []
            return (lines ?? first).map {
                LineFault(line: $0.line, reason: String(($0.error ?? "refused").prefix(200)))
            }
        }
    }
}

extension Int {
    fileprivate func clamped(to range: ClosedRange<Int>) -> Int {
        Swift.min(Swift.max(self, range.lowerBound), range.upperBound)
    }
}
