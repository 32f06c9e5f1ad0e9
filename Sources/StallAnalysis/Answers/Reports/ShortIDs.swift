// An id has 32 digits; a prefix is enough to identify a report.

package import StallModel

/// Unique prefixes of ids, all of one length.
///
/// At least twelve digits: those are the millisecond, and ids made within a minute share eight.
package struct ShortIDs: Sendable {
    private let length: Int

    /// Finds the length at which the shown ids differ from all others.
    package init(shown: some Collection<UniqueID>, among ids: some Sequence<UniqueID>) {
        var shared = 0
        for id in ids {
            for other in shown where other != id {
                shared = max(shared, id.sharedDigitCount(with: other))
            }
        }
        length = max(12, shared + 1)
    }

    package subscript(id: UniqueID) -> String { String(id.description.prefix(length)) }
}
