// The way to a collector: what `stallctl push` sends, as requests.

#if Fleet
internal import Foundation
internal import StallFormats
internal import StallGzip
internal import StallHTTP
internal import StallModel
internal import StallPush

/// The part that every request of a run shares.
struct PushTarget {
    /// Without a slash at its end.
    var url: String
    var tokenFile: String?
    var authorityFile: String?

    /// Reads the token again: it may be replaced while a job runs.
    func token() throws(PushProblem) -> String? {
        guard let tokenFile else { return nil }
        guard let file = FileHandle(forReadingAtPath: tokenFile) else {
            throw PushProblem("\(tokenFile): cannot be read; expected a token")
        }
        defer { try? file.close() }
        let bytes = (try? file.read(upToCount: 4097)) ?? Data()
        let text = String(decoding: bytes, as: UTF8.self)
            .trimmingCharacters(in: .whitespacesAndNewlines)
        guard !text.isEmpty, bytes.count <= 4096, text.utf8.allSatisfy({ 0x21...0x7e ~= $0 })
        else {
            throw PushProblem("\(tokenFile): expected one token of visible ASCII characters")
        }
        return text
    }

    func request(_ method: String, _ path: String) throws(PushProblem) -> HTTPRequest {
        var request = HTTPRequest(method: method, url: url + path, authorityFile: authorityFile)
        if let token = try token() {
            request.fields.append(("Authorization", "Bearer \(token)"))
        }
        return request
    }
}

/// Why a push cannot begin.
struct PushProblem: Error, CustomStringConvertible {
    var description: String
    init(_ description: String) { self.description = description }
}

/// Waits between attempts, and ends when there is no more time or a signal came.
struct PushPatience {
    let stop: StopSignal
    /// How many seconds may be waited in all, for answers that do not come as well; nil without end.
    var seconds: Double?
    /// Why the last attempt failed, after which there was no time for another one.
    private(set) var failure: String?
    /// The last thing that was said of an attempt that failed.
    private var lastReason = ""

    init(_ stop: StopSignal, seconds: Double?) { (self.stop, self.seconds) = (stop, seconds) }

    /// The least time that an answer has to begin, in seconds: a collector that commits is not a silent one.
    private static let leastSilence = 5
    /// Bytes a second.
    private static let slowestLine = 16 << 10

    /// Sends a request. The time of one that gets no answer is waited, too.
    ///
    /// - Parameter isQuestion: It is small: all of it has no more time. A batch has the time of a slow line besides, for
    ///   its own bytes; an answer that comes byte by byte has none.
    mutating func send(_ request: HTTPRequest, by curl: Curl, isQuestion: Bool) -> HTTPReply {
        var request = request
        var limit: Int?
        if let seconds {
            let time = max(Self.leastSilence, Int(seconds.rounded(.up)))
            limit = time
            request.limits.silence_s = time
            let upload = isQuestion ? 0 : (request.body?.count ?? 0) / Self.slowestLine
            request.limits.answer_s = min(request.limits.answer_s, time + 1 + upload)
        }
        let began = ContinuousClock.now
        let stop = stop
        let reply = curl.send(request) { stop.isRequested }
        if case .answer = reply { return reply }
        if let left = seconds {
            seconds = max(0, left - (ContinuousClock.now - began) / .seconds(1))
        }
        // The machine's load decides which of the two limits comes first.
        if case .timedOut = reply, let limit {
            return .failed(reason: "no answer within \(limit) s")
        }
        return reply
    }

    mutating func wait(_ time: Double, _ url: String, _ reason: String) -> Bool {
        if let left = seconds {
            guard time <= left else {
                failure = reason
                return false
            }
            seconds = left - time
        }
        if reason != lastReason {
            lastReason = reason
            say("stallctl: \(url): \(reason); trying again".printable)
        }
        stop.sleep(seconds: time)
        return !stop.isRequested
    }
}

/// Sends to a collector of ours (docs/fleet.md).
struct CollectorLine: PushLine {
    let target: PushTarget
    let curl = Curl()
    var patience: PushPatience

    var isCancelled: Bool { patience.stop.isRequested }

    mutating func position(of store: UniqueID) -> HTTPReply {
        do throws(PushProblem) {
            let request = try target.request("GET", "/v1/stores/\(store)")
            return patience.send(request, by: curl, isQuestion: true)
        } catch { return .refused(reason: error.description) }
    }

    mutating func send(_ batch: OutgoingBatch, of store: UniqueID) -> HTTPReply {
        do {
            var request = try target.request("POST", "/v1/stores/\(store)/lines")
            let body = try Gzip.compress(batch.lines)
            request.fields += [
                ("Content-Type", "application/x-ndjson"), ("Content-Encoding", "gzip"),
                ("Content-Digest", "sha-256=:\(SHA256.base64(SHA256.digest(body))):"),
                ("Stallwatch-Schema", "1"), ("Stallwatch-From", "\(batch.from)"),
                ("Stallwatch-Through", "\(batch.through)"),
            ]
            request.body = body
            return patience.send(request, by: curl, isQuestion: false)
        } catch { return .refused(reason: "\(error)") }
    }

    mutating func wait(seconds: Double, reason: String) -> Bool {
        patience.wait(seconds, target.url, reason)
    }
}
#endif
