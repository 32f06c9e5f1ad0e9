// The beginning of a line in a log: when it was written, on which host, by which process.
//
//     2026-11-20T09:14:31.204+01:00 db-7 scylla[4242]:
//     2026-11-20T09:14:31+00:00 db-7   !INFO | scylla[4242]:
//     Nov 20 09:14:31 db-7 kernel:
//     [Fri Nov 20 09:14:31 2026]
//     Fri 2026-11-20 09:14:31 CET db-7 kernel:
//     WARN  2026-11-20 09:14:31,204 [shard  3:main] seastar -
//
// A time without a year gets the last one in which it is before the log was written. One without a zone, or with a
// zone's name, is taken as UTC, as in Apple's headers.

internal import StallModel

/// The part of a line before its message.
struct LogPrefix {
    /// Of several times, the last one: a collector of logs writes its own before.
    private(set) var time: UnixTime?
    /// A time without a year.
    private var (month, day, clock) = ("", ArraySlice<UInt8>(), ArraySlice<UInt8>())
    private(set) var host = ""
    private(set) var process = ""
    private(set) var pid: Int32?
    /// The word that names the process: the other lines of its message have the same. Empty without one.
    private(set) var writer: ArraySlice<UInt8> = []

    /// It ends with the first tag.
    private var isTag = false

    /// Longer beginnings are none, in words and in bytes.
    private static let (wordLimit, byteLimit) = (24, 512)

    /// The prefix that ends with the tag of the process, and not in a text of another process that names it; nil if it
    /// is none.
    init?(ofTag text: ArraySlice<UInt8>) {
        self.init(text)
        guard isTag else { return nil }
    }

    init(_ text: ArraySlice<UInt8>) {
        guard text.count <= Self.byteLimit else { return }
        var text = text.withoutPriority
        if let rest = text.afterCollector {
            var first = text
            time = LogPrefix(first.takeWord()).time
            text = rest
        }
        let words = text.words(atMost: Self.wordLimit)
        var end: Int?
        var place = 0
        while place < words.count {
            let size = takeTime(words[place...], after: place > 0 ? words[place - 1] : [])
            if size > 0 { end = place + size }
            place += max(1, size)
        }
        let writer = takeProcess(words)
        if let end, let writer, end < writer, words[end].first != UInt8(ascii: "[") {
            host = words[end].text
        }
        isTag = Self.isTag(words, end)
    }

    /// Whether no other tag is before the last word. A label, as a file's name of grep, may be the first word.
    private static func isTag(_ words: [ArraySlice<UInt8>], _ end: Int?) -> Bool {
        let mark =
            words.first?.first == UInt8(ascii: "[") ? words.firstIndex { $0.last == 0x5d } : nil
        let clock = words.lastIndex { $0.isClock }
        let end = end ?? (clock ?? mark).map { $0 + 1 } ?? 0
        // Behind the time: a host, a level, a bar. Without one only a host is a beginning of a log.
        return words.count - end <= (end > 0 ? 4 : 2)
            && !words.dropFirst().dropLast().contains { $0.last == UInt8(ascii: ":") }
            && words.first?.ends(with: "]:") != true
    }

    /// A time over several words.
    ///
    /// - Returns: How many words it is; 0 if it is none.
    private mutating func takeTime(
        _ words: ArraySlice<ArraySlice<UInt8>>, after last: ArraySlice<UInt8>
    ) -> Int {
        let word = words[words.startIndex].withoutBrackets
        func next(_ count: Int) -> ArraySlice<UInt8> {
            let place = words.startIndex + count
            return place < words.endIndex ? words[place].withoutBrackets : []
        }
        if word.count > 11, word.prefix(10).isDate,
            word[word.startIndex + 10] == UInt8(ascii: "T")
        {
            let clock = word.dropFirst(11)
            let digits = clock.prefix { $0.isDigit || $0 == 0x3a || $0 == 0x2c || $0 == 0x2e }
            time = Self.time(word.prefix(10), digits, clock[digits.endIndex...]) ?? time
            return 1
        }
        if word.isDate, next(1).isClock {
            let hasZone = next(2).isZone
            time = Self.time(word, next(1), hasZone ? next(2) : []) ?? time
            return hasZone || Self.isZoneName(next(2), last) ? 3 : 2
        }
        if let month = Self.month(word), next(1).decimal(UInt8.self) != nil, next(2).isClock {
            guard next(3).count == 4, next(3).allSatisfy(\.isDigit) else {
                (self.month, day, clock) = (month, next(1), next(2))
                return 3
            }
            let day = next(1)
            let date = "\(next(3).text)-\(month)-\(day.count == 1 ? "0" : "")\(day.text)"
            time = Self.time(ArraySlice(date.utf8), next(2), []) ?? time
            return 4
        }
        // Seconds since 1970, with microseconds.
        if word.count == 17, word[word.startIndex + 10] == UInt8(ascii: "."),
            let seconds = word.prefix(10).decimal(Int64.self),
            let fraction = word.suffix(6).decimal(Int64.self)
        {
            time = UnixTime(microseconds: seconds * 1_000_000 + fraction)
            return 1
        }
        return 0
    }

    /// `CET`: the journal writes one behind a time with the day of the week.
    private static func isZoneName(_ name: ArraySlice<UInt8>, _ weekday: ArraySlice<UInt8>) -> Bool
    {
        let days = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
        return days.contains { weekday.elementsEqual($0.utf8) } && (2...5).contains(name.count)
            && name.allSatisfy { 0x41...0x5a ~= $0 }
    }

    /// The latest time of that day that is not after another one, but for a day of difference between zones.
    func likelyTime(before end: UnixTime?) -> UnixTime? {
        guard let end, !clock.isEmpty else { return nil }
        let limit = end.microseconds &+ 86_400_000_000
        guard limit >= 0 else { return nil }
        let year = 1970 + limit / 31_556_952_000_000
        // A leap day comes every eight years at the latest.
        for year in (max(1970, year - 8)...(year + 1)).reversed() {
            if let time = time(inYear: year), time.microseconds <= limit { return time }
        }
        return nil
    }

    /// The time without its year, for the distance between two lines.
    var timeOfYear: UnixTime? { clock.isEmpty ? nil : time(inYear: 2000) }

    private func time(inYear year: Int64) -> UnixTime? {
        let date = "\(year)-\(month)-\(day.count == 1 ? "0" : "")\(day.text)"
        return Self.time(ArraySlice(date.utf8), clock, [])
    }

    private static func time(
        _ date: ArraySlice<UInt8>, _ clock: ArraySlice<UInt8>, _ zone: ArraySlice<UInt8>
    ) -> UnixTime? {
        let clock = clock.text.map { $0 == "," ? "." : $0 }
        let isUTC =
            zone.isEmpty || zone.elementsEqual("UTC".utf8) || zone.elementsEqual("GMT".utf8)
        let zone = isUTC ? "+0000" : zone.count == 3 ? zone.text + "00" : zone.text
        return AppleHeader.time("\(date.text) \(String(clock)) \(zone)")
    }

    private static func month(_ word: ArraySlice<UInt8>) -> String? {
        let months = [
            "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
        ]
        guard word.count == 3, let place = months.firstIndex(where: { word.elementsEqual($0.utf8) })
        else { return nil }
        return place < 9 ? "0\(place + 1)" : "\(place + 1)"
    }

    /// `scylla[4242]:`, or a name at the end.
    ///
    /// - Returns: The number of that word.
    private mutating func takeProcess(_ words: [ArraySlice<UInt8>]) -> Int? {
        for (place, word) in words.enumerated().reversed() where word.ends(with: "]:") {
            guard let bracket = word.firstIndex(of: UInt8(ascii: "[")), bracket > word.startIndex,
                let number = word[(bracket + 1)...].dropLast(2).decimal(Int32.self)
            else { continue }
            (process, pid, writer) = (word[..<bracket].text, number, word)
            return place
        }
        guard let last = words.last, last.count > 1, last.last == UInt8(ascii: ":"),
            last.first != UInt8(ascii: "[")
        else { return nil }
        (process, writer) = (last.dropLast().text, last)
        return words.count - 1
    }
}

extension UnixTime {
    /// When something began that lasted so long until then.
    func before(_ duration: Duration?) -> UnixTime {
        UnixTime(microseconds: microseconds &- (duration ?? .zero).nanoseconds / 1000)
    }
}

extension ArraySlice<UInt8> {
    fileprivate var withoutBrackets: Self {
        var word = self
        if let first = word.first, first == 0x5b || first == 0x3c { word = word.dropFirst() }
        if let last = word.last, last == 0x5d || last == 0x3e { word = word.dropLast() }
        return word
    }

    /// Without syslog's `<3>`.
    fileprivate var withoutPriority: Self {
        guard first == UInt8(ascii: "<"), let end = prefix(5).firstIndex(of: UInt8(ascii: ">")),
            self[(startIndex + 1)..<end].decimal(UInt8.self) != nil
        else { return self }
        return self[(end + 1)...]
    }

    /// `2026-11-20`.
    fileprivate var isDate: Bool {
        count == 10
            && enumerated().allSatisfy { $0 == 4 || $0 == 7 ? $1 == 0x2d : $1.isDigit }
    }

    /// `09:14:31`, with a fraction or without.
    fileprivate var isClock: Bool {
        count >= 8
            && prefix(8).enumerated().allSatisfy { $0 == 2 || $0 == 5 ? $1 == 0x3a : $1.isDigit }
            && dropFirst(8).allSatisfy { $0.isDigit || $0 == 0x2c || $0 == 0x2e }
    }

    /// `UTC`, `GMT`, `Z`, `+01:00`, `-0700` or `-03`.
    fileprivate var isZone: Bool {
        if ["UTC", "GMT", "Z"].contains(where: { elementsEqual($0.utf8) }) { return true }
        guard let first, first == 0x2b || first == 0x2d, [3, 5, 6].contains(count) else {
            return false
        }
        return dropFirst().allSatisfy { $0.isDigit || $0 == 0x3a }
    }
}
