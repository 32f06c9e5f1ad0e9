// An id is 32 digits; its beginning is enough to tell it from its neighbours.

internal import StallModel

/// The shortest beginnings that tell ids from each other.
///
/// Never fewer than twelve digits: those are the millisecond, and ids made within a minute share eight.
struct ShortIDs {
    private let length: Int

    init(_ ids: some Sequence<UniqueID>) {
        let texts = Set(ids.map(\.description)).sorted()
        let shared =
            zip(texts, texts.dropFirst()).map { zip($0, $1).prefix { $0 == $1 }.count }.max() ?? 0
        length = max(12, shared + 1)
    }

    subscript(id: UniqueID) -> String { String(id.description.prefix(length)) }

    /// The beginning of an id that differs from `prefix` by one slip of a finger, as long as `prefix` is.
    static func nearMiss(of prefix: String, in ids: some Sequence<UniqueID>) -> String? {
        let typed = prefix.lowercased().filter { $0 != "-" }
        return ids.lazy.map { String($0.description.prefix(typed.count)) }
            .first { Suggestion.editDistance(typed, $0) == 1 }
    }
}
