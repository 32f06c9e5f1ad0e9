// The operator's settings file: thresholds and limits that apply to a running app. See docs/settings.md.

internal import FoundationEssentials
internal import StallModel
internal import StallRunLoop

/// The content of a settings file. Every key is optional.
struct AgentSettings: Equatable, Decodable {
    var thresholdMs: Double?
    var loops: [String: Loop]?
    var limits: Limits?
    var debugger: String?

    struct Loop: Equatable, Decodable {
        var thresholdMs: Double?
        var modesMs: [String: Double]?
        var graceMs: Double?
    }

    struct Limits: Equatable, Decodable {
        var perPlace: Int?
        var perHour: Int?
    }

    /// No settings.
    init() {}

    /// - Throws: ``SettingsError`` with the reason, as a clause.
    init(json: [UInt8]) throws(SettingsError) {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        do {
            self = try decoder.decode(AgentSettings.self, from: Data(json))
        } catch let error as DecodingError {
            throw SettingsError(error)
        } catch {
            throw SettingsError(description: "it is not JSON")
        }
        let loops = loops?.values.map(\.self) ?? []
        let own = [thresholdMs] + loops.map(\.thresholdMs)
        let thresholds =
            own.compactMap(\.self) + loops.flatMap { $0.modesMs?.values.map(\.self) ?? [] }
        for threshold in thresholds where !(20...86_400_000).contains(threshold) {
            throw SettingsError(
                description: "a threshold of \(threshold) ms; expected 20 to 86400000")
        }
        for grace in loops.compactMap(\.graceMs) where !(0...86_400_000).contains(grace) {
            throw SettingsError(description: "a grace of \(grace) ms; expected 0 to 86400000")
        }
        for limit in [limits?.perPlace, limits?.perHour].compactMap(\.self) where limit < 0 {
            throw SettingsError(description: "a limit of \(limit); expected 0 or more")
        }
        guard debugger == nil || DebuggerPolicy(rawValue: debugger!) != nil else {
            throw SettingsError(description: "debugger is \(debugger!); expected record or ignore")
        }
    }

    /// Applies the file's settings for a loop to its policy.
    func adjust(_ policy: inout StallPolicy, of name: String) {
        let loop = loops?[name]
        if let threshold = loop?.thresholdMs ?? thresholdMs {
            policy.threshold = .microseconds(threshold * 1000)
        }
        for (mode, threshold) in loop?.modesMs ?? [:] {
            policy.modes[LoopMode(mode)] = .microseconds(threshold * 1000)
        }
        if let grace = loop?.graceMs { policy.grace = .microseconds(grace * 1000) }
    }

    func limits(over base: RateLimits) -> RateLimits {
        RateLimits(
            perPlace: limits?.perPlace ?? base.perPlace, perHour: limits?.perHour ?? base.perHour)
    }
}

/// Why a settings file is invalid.
struct SettingsError: Error, Equatable, CustomStringConvertible {
    let description: String
}

extension SettingsError {
    fileprivate init(_ error: DecodingError) {
        switch error {
        case .typeMismatch(_, let context), .valueNotFound(_, let context),
            .keyNotFound(_, let context):
            let place = context.codingPath.map(\.stringValue).joined(separator: ".")
            self.init(description: "\(place): \(context.debugDescription)")
        default: self.init(description: "it is not JSON")
        }
    }
}
