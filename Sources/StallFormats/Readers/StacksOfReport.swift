// Stacks of other programs' reports in the form of a stall's.

internal import StallModel

/// A stack in the form of a stall's.
struct ConvertedStack {
    private static let frameLimit = 1000

    var locations: [CodeLocation]
    var frames: [Frame]
    /// Of all that the report says of it.
    var hash: Int64

    fileprivate init(_ stack: [ForeignFrame], _ demangle: (String) -> String) {
        var hash = ContentHash()
        for frame in stack {
            hash.combine(frame.function)
            hash.combine(frame.image)
            hash.combine(frame.offset ?? 0)
            hash.combine(frame.file)
            hash.combine(UInt64(bitPattern: Int64(frame.line ?? 0)))
        }
        self.hash = hash.value
        var stack = stack
        // A copy, which a stack of names only does not need.
        if stack.contains(where: { $0.offset != nil }) { stack.markInlined() }
        let count = min(stack.count, Self.frameLimit)
        (frames, locations) = ([], [])
        frames.reserveCapacity(count)
        locations.reserveCapacity(count)
        var inlined: [ForeignFrame] = []
        for index in 0..<count {
            let frame = stack[index]
            let location = frame.location(with: inlined)
            // The function of the last one may be cut off.
            let isInlined = frame.isInlined && index + 1 < count
            frames.append(frame.symbolized(at: location, isInlined: isInlined, demangle))
            if !isInlined { locations.append(location) }
            if frame.isInlined { inlined.append(frame) } else { inlined.removeAll() }
        }
    }
}

/// Converts the stacks of a report, which has to outlive it. A profile has the same ones many times, in arrays that share
/// their memory: each is converted once.
struct StacksOfReport {
    let demangle: (String) -> String
    private var converted: [UnsafePointer<ForeignFrame>: ConvertedStack] = [:]

    init(demangle: @escaping (String) -> String) { self.demangle = demangle }

    subscript(stack: [ForeignFrame]) -> ConvertedStack {
        mutating get {
            guard let place = stack.withUnsafeBufferPointer(\.baseAddress), !stack.isEmpty else {
                return ConvertedStack([], demangle)
            }
            if let found = converted[place] { return found }
            let new = ConvertedStack(stack, demangle)
            converted[place] = new
            return new
        }
    }
}

extension [ForeignFrame] {
    /// Functions at one address are inlined into the last of them. The same function again is a recursion.
    fileprivate mutating func markInlined() {
        var first = 0
        for index in indices.dropFirst() {
            let isSame =
                self[index].offset != nil && self[index].offset == self[first].offset
                && self[index].image == self[first].image
                && self[index].buildID == self[first].buildID
                && self[index].function != nil && self[index - 1].function != nil
                && self[index].function != self[first].function
            guard isSame else {
                first = index
                continue
            }
            self[index - 1].isInlined = true
            self[index].kind = self[first].kind
        }
    }
}

extension ForeignFrame {
    fileprivate func symbolized(
        at location: CodeLocation, isInlined: Bool, _ demangle: (String) -> String
    ) -> Frame {
        var frame = Frame(location)
        frame.function = function.map(demangle)
        frame.rawName = frame.function == function ? nil : function
        frame.file = file
        frame.line = line
        frame.isInlined = isInlined
        return frame
    }

    /// A name without an address takes the place of one: with its line, and all that was inlined there, it is equal in
    /// every report.
    ///
    /// - Parameter inlined: The functions that were inlined into it.
    fileprivate func location(with inlined: [ForeignFrame]) -> CodeLocation {
        if let offset {
            return CodeLocation(imagePath: image, buildID: buildID, offset: offset, kind: kind)
        }
        var hash = ContentHash()
        for frame in inlined {
            hash.combine(frame.function)
            hash.combine(frame.file)
            hash.combine(UInt64(max(frame.line ?? 0, 0)))
        }
        hash.combine(function)
        hash.combine(file)
        return CodeLocation(
            imagePath: image ?? Frame.unknownImage,
            buildID: withUnsafeBytes(of: hash.value.bigEndian) { BuildID(bytes: $0) },
            offset: UInt64(max(line ?? 0, 0)), kind: kind)
    }
}
