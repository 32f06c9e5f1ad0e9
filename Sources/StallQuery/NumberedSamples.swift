// Groups a stall's samples by numbers of functions and lines.

package import StallModel

/// The samples of a stall that are not late and have a stack, in chronological order.
package struct NumberedSamples {
    package struct Entry {
        var offset: Duration
        var weight: Duration
        /// Innermost first.
        var frames: [FrameNumber]

        package init(_ sample: Sample, _ frames: [FrameNumber]) {
            (offset, weight, self.frames) = (sample.offset, sample.weight, frames)
        }
    }

    /// When a function was on the stack.
    package struct Presence: Equatable {
        /// The first and last sample with the function; nil if that was the last sample of the stall.
        package var from: Duration
        package var until: Duration?
        /// Share of the samples' weight, 0 to 1. Less than the rest from `from` on if the function returned in between.
        package var share: Double

        package init(from: Duration, until: Duration?, share: Double) {
            (self.from, self.until, self.share) = (from, until, share)
        }
    }

    /// Samples whose frames are at the same lines.
    package struct Stack {
        /// Their indices among the samples.
        package var members: [Int]
        package var weight: Duration
    }

    package var entries: [Entry] = []

    package init() {}

    /// - Parameter samples: None is late, and each has a stack.
    package init(_ samples: [Sample], by numbers: inout FrameNumbers) {
        for sample in samples {
            entries.append(Entry(sample, sample.frames.map { numbers.number(of: $0) }))
        }
    }

    package var totalWeight: Duration { entries.reduce(.zero) { $0 + $1.weight } }

    /// Sorted by weight, heaviest first, then by their number of samples, as of samples without weights, then by time.
    package var stacks: [Stack] {
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
            .sorted {
                ($1.element.weight, $1.element.members.count, $0.offset)
                    < ($0.element.weight, $0.element.members.count, $1.offset)
            }
            .map(\.element)
    }

    /// When each function was on the stack, by time; the innermost first among equals.
    package var functions: [(function: Int32, presence: Presence)] {
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
                    Presence(
                        from: entries[part.first].offset,
                        until: until == entries.last?.offset ? nil : until,
                        share: part.weight / total)
                )
            }
    }

    /// The same with a frame of each function.
    ///
    /// - Parameter samples: Those that were numbered.
    package func functions(of samples: [Sample]) -> [(frame: Frame, presence: Presence)] {
        var frames: [Int32: Frame] = [:]
        for stack in stacks {
            let first = stack.members[0]
            for (frame, number) in zip(samples[first].frames, entries[first].frames)
            where frames[number.function] == nil {
                frames[number.function] = frame
            }
        }
        return functions.compactMap { function, presence in
            frames[function].map { ($0, presence) }
        }
    }
}
