// Rows back into stacks and the names of their locations.

package import StallModel
package import StallStore

/// A stored stack, as locations and as frames.
struct StoredStack {
    var locations: [CodeLocation]
    var frames: [Frame]
    var isTruncated: Bool
}

/// The functions on a stack, without the parts that no rule of grouping uses (lines, and offsets inside of functions):
/// two stacks of one path are the same to every grouper.
struct FunctionPath: Hashable {
    var hash: Int64
    /// Every location on it has been looked up, so that names that come later change little.
    var isLookedUp: Bool

    /// The hash that one location contributes.
    static func hash(of frames: [Frame]) -> UInt64 {
        var hash = ContentHash()
        for frame in frames {
            hash.combine(frame.function)
            hash.combine(frame.rawName)
            hash.combine(frame.file)
            hash.combine(frame.imagePath)
            hash.combine(bytes: frame.buildID?.bytes ?? [])
            // Without a name only the location distinguishes functions.
            if frame.function == nil { hash.combine(frame.offset) }
            hash.combine(UInt64(frame.kind.rawValue) << 1 | (frame.isInlined ? 1 : 0))
        }
        return UInt64(bitPattern: hash.value)
    }
}

/// A location in code, and the functions there.
///
/// Shared by all stacks that pass through it; a class, so that reading it copies nothing.
package final class Place {
    package let location: CodeLocation
    package let frames: [Frame]
    let isLookedUp: Bool
    /// Two locations of one value show the same functions.
    private(set) lazy var functions: UInt64 = FunctionPath.hash(of: frames)

    init(location: CodeLocation, frames: [Frame], isLookedUp: Bool) {
        self.location = location
        self.frames = frames
        self.isLookedUp = isLookedUp
    }
}

/// Reads stacks and locations, each time again.
struct StackRows {
    private let findStack, findLocation, findFrames: Statement

    init(_ connection: Connection) throws {
        findStack = try connection.prepare("select is_truncated, locations from stack where id = ?")
        findLocation = try connection.prepare(
            """
            select image.path, image.build_id, location.offset, location.kind, location.detail
            from location join image on image.id = location.image where location.id = ?
            """)
        findFrames = try connection.prepare(
            """
            select function.name, function.raw_name, function.file, location_frame.line,
                location_frame.is_inlined
            from location_frame left join function on function.id = location_frame.function
            where location_frame.location = ? order by location_frame.position
            """)
    }

    /// Nil when the store has no stack of this number.
    func entries(ofStack id: Int64) throws -> (entries: [StackEntry], isTruncated: Bool)? {
        try findStack.bind(id)
        guard try findStack.step() else { return nil }
        defer { findStack.reset() }
        guard let entries = [StackEntry](encoded: findStack.blob(at: 1)) else {
            throw findStack.damage("stack \(id) is not a list of locations")
        }
        return (entries, try findStack.integer(at: 0) != 0)
    }

    /// A location by its number, and its frames; one frame without a function where nothing is known.
    func place(_ id: Int64) throws -> Place {
        try findLocation.bind(id)
        guard try findLocation.step() else {
            throw findLocation.damage("a stack refers to location \(id), which is missing")
        }
        let location = CodeLocation(
            imagePath: findLocation.optionalText(),
            buildID: findLocation.optionalBytes().map(BuildID.init),
            offset: UInt64(bitPattern: try findLocation.integer()),
            kind: try findLocation.value())
        let isLookedUp = try findLocation.integer() > 0
        findLocation.reset()
        var frames: [Frame] = []
        try findFrames.bind(id)
        while try findFrames.step() {
            var frame = Frame(location)
            frame.function = findFrames.optionalText()
            frame.rawName = findFrames.optionalText()
            frame.file = findFrames.optionalText()
            frame.line = findFrames.optionalInteger().map { Int($0) }
            frame.isInlined = try findFrames.integer() != 0
            frames.append(frame)
        }
        if frames.isEmpty { frames = [Frame(location)] }
        return Place(location: location, frames: frames, isLookedUp: isLookedUp)
    }

    func damage(_ detail: String) -> StoreError { findStack.damage(detail) }
}

/// Reads stacks; each stack and each location is read once.
package final class StackReader {
    private let rows: StackRows
    /// The stacks read last; all are forgotten when there are many, since a stack is large and a store may have
    /// millions.
    private var stacks: [Int64: StoredStack] = [:]
    private static let stackCapacity = 2048
    private var places: [Int64: Place] = [:]

    package init(_ connection: Connection) throws { rows = try StackRows(connection) }

    /// Nil when the store has no stack of this number.
    func stack(_ id: Int64) throws -> StoredStack? {
        if let stack = stacks[id] { return stack }
        guard let (entries, isTruncated) = try rows.entries(ofStack: id) else { return nil }
        let stack = StoredStack(
            locations: try entries.map { entry in
                var location = try place(entry.location).location
                location.isGuessed = entry.isGuessed
                return location
            }, frames: try frames(entries), isTruncated: isTruncated)
        if stacks.count == Self.stackCapacity { stacks.removeAll(keepingCapacity: true) }
        stacks[id] = stack
        return stack
    }

    /// Only the frames of a stack; nil when the store has no stack of this number.
    func frames(ofStack id: Int64) throws -> [Frame]? {
        try rows.entries(ofStack: id).map { try frames($0.entries) }
    }

    /// The functions on a stack, as one value; nil when the store has no stack of this number.
    func path(ofStack id: Int64) throws -> FunctionPath? {
        try rows.entries(ofStack: id).map { entries, _ in
            var (hash, isLookedUp) = (ContentHash(), true)
            for entry in entries {
                let place = try place(entry.location)
                hash.combine(place.functions ^ (entry.isGuessed ? 1 : 0))
                isLookedUp = isLookedUp && place.isLookedUp
            }
            return FunctionPath(hash: hash.value, isLookedUp: isLookedUp)
        }
    }

    private func frames(_ entries: [StackEntry]) throws -> [Frame] {
        var frames: [Frame] = []
        frames.reserveCapacity(entries.count)
        for entry in entries {
            let first = frames.count
            frames += try place(entry.location).frames
            guard entry.isGuessed else { continue }
            for index in first..<frames.count { frames[index].isGuessed = true }
        }
        return frames
    }

    /// A location by its number, and its frames.
    package func place(_ id: Int64) throws -> Place {
        if let place = places[id] { return place }
        let place = try rows.place(id)
        places[id] = place
        return place
    }
}
