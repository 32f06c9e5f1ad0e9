// The sides of `diff`: versions, time ranges or stores.

internal import Foundation
internal import StallModel

/// One side of a comparison, as typed.
enum ComparedSet: Equatable {
    case version(String)
    /// `2026-11-01..2026-11-07`; either end may be missing. An end that is a day includes that day.
    case range(since: UnixTime?, until: UnixTime?)
    case store(path: String)

    /// - Parameter exists: Whether a file exists at the path.
    init(
        _ text: String, now: UnixTime, timeZone: TimeZone, exists: (String) -> Bool
    ) throws(TimeArgumentError) {
        if exists(text) || text.hasSuffix(".sqlite") || text.contains("/") {
            self = .store(path: text)
        } else if let dots = text.firstRange(of: "..") {
            let (first, last) = (String(text[..<dots.lowerBound]), String(text[dots.upperBound...]))
            let since =
                first.isEmpty ? nil : try TimeArgument.parse(first, now: now, timeZone: timeZone)
            let until =
                last.isEmpty ? nil : try TimeArgument.parseEnd(last, now: now, timeZone: timeZone)
            guard since != nil || until != nil else { throw .unreadable(text) }
            if let since, let until, since >= until { throw .emptyRange(text) }
            self = .range(since: since, until: until)
        } else {
            self = .version(text)
        }
    }
}
