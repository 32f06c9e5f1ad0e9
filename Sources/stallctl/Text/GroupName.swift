// How people name a group on the command line.

internal import StallAnalysis

extension Hotspot {
    /// A part of the title or of a function, or a pattern for all of it, or the beginning of the signature.
    func isMeant(by name: String) -> Bool {
        NamePattern(name).fits(title) || frames.contains { NamePattern(name).fits($0) }
            || name.count >= 4 && hexadecimal(signature.hash).hasPrefix(name.lowercased())
    }
}

extension [Hotspot] {
    /// The one group that the name means.
    func one(named name: String, inStore path: String) throws -> Hotspot {
        let found = filter { $0.isMeant(by: name) }
        guard found.count == 1 else {
            throw UnclearGroup(path: path, name: name, found: found, known: self)
        }
        return found[0]
    }
}

/// No group, or more than one, has the name.
struct UnclearGroup: Error, CustomStringConvertible {
    var path: String
    var name: String
    var found: [Hotspot]
    var known: [Hotspot]

    var description: String {
        guard found.isEmpty else {
            let some = found.prefix(4).map {
                "\(hexadecimal($0.signature.hash).prefix(8)) \($0.title)"
            }
            return "\(path): '\(name)' is the name of \(found.count) groups: "
                + some.joined(separator: "; ") + (found.count > 4 ? "; ..." : "")
                + "; the digits before a title name one"
        }
        let functions = known.compactMap(\.frames.first).map { String($0.prefix { $0 != "(" }) }
        let hint = Suggestion.closest(to: name, in: functions).map { "did you mean '\($0)'?" }
        return "\(path): no group's title has '\(name)'; "
            + (hint ?? "'stallctl top' shows the groups")
    }
}
