// An id is 32 digits; its beginning is enough to tell it from its neighbours.

package import StallModel

/// The beginnings of ids, all of one length, each of which only one id has.
///
/// Never fewer than twelve digits: those are the millisecond, and ids made within a minute share
/// eight.
package struct ShortIDs: Sendable {
    private let length: Int

    /// Finds the length that tells the shown ids from all others.
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
