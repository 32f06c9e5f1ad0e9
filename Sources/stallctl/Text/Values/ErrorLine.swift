// Errors as JSON, for a program that runs stallctl: it acts on a field, not on words of a message.

internal import Foundation
internal import StallAnalysis
internal import StallFormats
internal import StallStore

/// The part of a command that an error is about.
enum ErrorKind: String {
    /// The command line.
    case usage
    /// The question: it is ambiguous, too large, or about something that does not exist.
    case question
    /// The answer: the store has no such report or group.
    case nothing
    /// Anything else: the store, a file, the network, this build.
    case failure

    init(_ error: any Error) {
        switch error {
        case StoreError.unknownReport: self = .nothing
        case StoreError.ambiguousReport, is TimeSpanError: self = .question
        case let error as any QuestionError: self = error.kind
        default: self = .failure
        }
    }
}

/// An error about the query, not about the store.
protocol QuestionError: Error, CustomStringConvertible {
    /// The store, which the description begins with.
    var path: String { get }
    var kind: ErrorKind { get }
}

/// An error as a line of JSON. Key names are a contract.
struct ErrorLine {
    var kind: ErrorKind
    /// Without the path of a store that is not at fault.
    var message: String

    init(_ error: any Error) {
        kind = ErrorKind(error)
        message = "\(error)"
        if let path = (error as? any QuestionError)?.path, message.hasPrefix(path + ": ") {
            message.removeFirst(path.count + 2)
        }
    }

    init(usage message: String) { (kind, self.message) = (.usage, message) }

    var text: String {
        get throws {
            let message = try JSONLines.text(message)
            let start = #"{"schema":"stallctl.error/1","kind":"\#(kind.rawValue)""#
            return start + #","message":\#(message)}"#
        }
    }

    /// Whether `STALLCTL_ERRORS` is `json`.
    static var isWanted: Bool { ProcessInfo.processInfo.environment["STALLCTL_ERRORS"] == "json" }
}
