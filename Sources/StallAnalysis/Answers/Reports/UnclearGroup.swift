// Selects groups by name.

import StallModel
package import StallQuery

/// A substring of the title or of a function, a glob for the whole name, or a prefix of the signature.
private func isGroup(_ group: ReportGroup, titled title: String, meantBy name: String) -> Bool {
    let pattern = NamePattern(name)
    return pattern.fits(title) || group.frames.contains { pattern.fits($0) }
        || name.count >= 4 && hexadecimal(group.signature).hasPrefix(name.lowercased())
}

extension StallAggregate {
    func isMeant(by name: String) -> Bool { isGroup(group, titled: title, meantBy: name) }
}

extension ReportGroup {
    /// Whether the name matches a report of this group and this cause.
    func isMeant(by name: String, cause: CauseClass?) -> Bool {
        isGroup(self, titled: title(under: cause), meantBy: name)
    }
}

extension [StallAggregate] {
    /// The one group that the name matches.
    package func one(named name: String, inStore path: String) throws(UnclearGroup)
        -> StallAggregate
    {
        let found = filter { $0.isMeant(by: name) }
        guard found.count == 1 else {
            throw UnclearGroup(path: path, name: name, found: found, known: self)
        }
        return found[0]
    }
}

/// The name matches no group, or more than one.
package struct UnclearGroup: Error {
    package var path: String
    package var name: String
    package var found: [StallAggregate]
    package var known: [StallAggregate]
}
