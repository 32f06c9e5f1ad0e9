// An id is 32 digits; its beginning is enough to tell it from its neighbours.

internal import StallModel

/// The beginnings of ids, all of one length, each of which only one id has.
///
/// Never fewer than twelve digits: those are the millisecond, and ids made within a minute share
/// eight.
struct ShortIDs {
    private let length: Int

    /// Finds the length that tells the shown ids from all others.
    init(shown: some Collection<UniqueID>, among ids: some Sequence<UniqueID>) {
        var shared = 0
        for id in ids {
            for other in shown where other != id {
                shared = max(shared, id.sharedDigitCount(with: other))
            }
        }
        length = max(12, shared + 1)
    }

    subscript(id: UniqueID) -> String { String(id.description.prefix(length)) }

    /// The beginning of an id that differs from `prefix` by one slip of a finger. Of a single digit any id's
    /// beginning does: nil.
    static func nearMiss(of prefix: String, in ids: some Sequence<UniqueID>) -> String? {
        let typed = prefix.lowercased().filter { $0 != "-" }
        guard typed.count > 1 else { return nil }
        let lengths = [typed.count, typed.count + 1, typed.count - 1].filter { $0 > 0 }
        return ids.lazy.flatMap { id in lengths.map { String(id.description.prefix($0)) } }
            .first { Suggestion.editDistance(typed, $0) == 1 }
    }
}
