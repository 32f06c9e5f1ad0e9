// How people name a group.

package import StallModel

extension StallAggregate {
    /// A part of the title or of a function, or a pattern for all of it, or the beginning of the signature.
    func isMeant(by name: String) -> Bool {
        NamePattern(name).fits(title) || frames.contains { NamePattern(name).fits($0) }
            || name.count >= 4 && hexadecimal(group.signature).hasPrefix(name.lowercased())
    }
}

extension [StallAggregate] {
    /// The one group that the name means.
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

/// No group, or more than one, has the name.
package struct UnclearGroup: Error {
    package var path: String
    package var name: String
    package var found: [StallAggregate]
    package var known: [StallAggregate]
}
