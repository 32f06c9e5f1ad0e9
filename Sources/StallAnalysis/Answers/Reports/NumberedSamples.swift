// Groups a stall's samples by numbers of functions and lines.

internal import StallModel

/// The samples of a stall that are not late and have a stack, in chronological order.
struct NumberedSamples {
    struct Entry {
        var offset: Duration
        var weight: Duration
        /// Innermost first.
        var frames: [FrameNumber]
    }

    /// Samples whose frames are at the same lines.
    struct Stack {
        /// Their indices among the samples.
        var members: [Int]
        var weight: Duration
    }

    var entries: [Entry] = []

    var totalWeight: Duration { entries.reduce(.zero) { $0 + $1.weight } }

    /// Sorted by weight, heaviest first, then by time.
    var stacks: [Stack] {
        var stacks: [Stack] = []
        for (index, entry) in entries.enumerated() {
            let equal = stacks.firstIndex { stack in
                entries[stack.members[0]].frames.elementsEqual(entry.frames) { $0.line == $1.line }
            }
            if let equal {
                stacks[equal].members.append(index)
                stacks[equal].weight += entry.weight
            } else {
                stacks.append(Stack(members: [index], weight: entry.weight))
            }
        }
        return stacks.enumerated()
            .sorted { ($1.element.weight, $0.offset) < ($0.element.weight, $1.offset) }
            .map(\.element)
    }

    /// When each function was on the stack, by time; the innermost first among equals.
    var functions: [(function: Int32, presence: Timeline.Presence)] {
        struct Part {
            var function: Int32
            var first, last: Int
            var weight: Duration
        }
        let total = totalWeight
        guard total > .zero else { return [] }
        var places: [Int32: Int] = [:]
        var parts: [Part] = []
        for stack in stacks {
            for frame in entries[stack.members[0]].frames where places[frame.function] == nil {
                places[frame.function] = parts.count
                parts.append(Part(function: frame.function, first: -1, last: -1, weight: .zero))
            }
        }
        for (index, entry) in entries.enumerated() {
            for frame in entry.frames {
                guard let place = places[frame.function], parts[place].last != index else {
                    continue
                }
                if parts[place].first < 0 { parts[place].first = index }
                parts[place].last = index
                parts[place].weight += entry.weight
            }
        }
        return parts.enumerated()
            .sorted { ($1.element.weight, $0.offset) < ($0.element.weight, $1.offset) }
            .map { _, part in
                let until = entries[part.last].offset
                return (
                    part.function,
                    Timeline.Presence(
                        from: entries[part.first].offset,
                        until: until == entries.last?.offset ? nil : until,
                        share: part.weight / total)
                )
            }
    }
}
