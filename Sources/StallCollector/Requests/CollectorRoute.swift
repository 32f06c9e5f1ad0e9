// The route of a path. Paths are compared as they were sent: `..`, `%2f` and other spellings of a valid path are not
// valid, and no part of a path ever becomes the name of a file.

internal import StallModel

/// The purpose of a request.
enum CollectorRoute: Hashable {
    case health
    case readiness
    case metrics
    /// How far a store was taken.
    case position(UniqueID)
    /// Lines of a store.
    case lines(UniqueID)
    /// A question about the collected reports.
    case question(ReadQuestion.Kind)

    /// The methods that it allows.
    var methods: [String] {
        switch self {
        case .lines: ["POST"]
        default: ["GET"]
        }
    }

    init?(_ path: Substring) {
        switch path {
        case "/healthz": self = .health
        case "/readyz": self = .readiness
        case "/metrics": self = .metrics
        case "/": self = .question(.report)
        default:
            if path.hasPrefix("/v1/stores/") {
                let rest = path.dropFirst("/v1/stores/".count)
                let digits = rest.prefix { $0 != "/" }
                guard let store = UniqueID(pathPart: digits) else { return nil }
                switch rest.dropFirst(digits.count) {
                case "": self = .position(store)
                case "/lines": self = .lines(store)
                default: return nil
                }
            } else if path.hasPrefix("/v1/"),
                let kind = ReadQuestion.Kind(rawValue: String(path.dropFirst("/v1/".count)))
            {
                self = .question(kind)
            } else {
                return nil
            }
        }
    }
}

extension UniqueID {
    /// The 32 lower-case hexadecimal digits that a store is named by; one form, so that one store has one address.
    init?(pathPart digits: Substring) {
        guard digits.utf8.count == 32, digits.utf8.allSatisfy({ Self.isDigit($0) }),
            let bytes = [UInt8](hexadecimal: digits)
        else { return nil }
        self.init(bytes: bytes)
    }

    private static func isDigit(_ byte: UInt8) -> Bool {
        (0x30...0x39).contains(byte) || (0x61...0x66).contains(byte)
    }
}
