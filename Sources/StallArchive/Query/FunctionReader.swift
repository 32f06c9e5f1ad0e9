// The functions on stacks as numbers: each location is read once, and each function once however many locations it has.

internal import StallModel
internal import StallQuery
internal import StallStore

/// Reads the functions of stacks, one after the other, or of most stacks of a store at once.
struct FunctionReader {
    private let connection: Connection
    private let findStack, findPlace, findFunction, findImage: Statement
    private var images: [Int64: (path: String?, buildID: BuildID?)] = [:]
    /// Whether rows of functions have names. Their texts are not held: they are most of a store's bytes.
    private var areNamed: [Int64: Bool] = [:]
    private var last: (row: Int64, function: Function)?
    /// By the key of an entry.
    private var places: [Int64: [Int32]] = [:]
    private var numbers: [Key: Int32] = [:]

    private struct Function {
        var name, rawName, file: String?
    }
    private struct Key: Hashable {
        var function: Int64
        var image: Int64
        /// Only where no name distinguishes functions.
        var offset: UInt64
        var flags: UInt8
    }

    private static let columns = """
        location.image, location.offset, location.kind, location_frame.function,
        ifnull(location_frame.is_inlined, 0)
        """

    init(_ connection: Connection) throws(StoreError) {
        self.connection = connection
        findStack = try connection.prepare("select locations from stack where id = ?")
        findPlace = try connection.prepare(
            """
            select \(Self.columns)
            from location left join location_frame on location_frame.location = location.id
            where location.id = ? order by location_frame.position
            """)
        findFunction = try connection.prepare(
            "select name, raw_name, file from function where id = ?")
        findImage = try connection.prepare("select path, build_id from image where id = ?")
    }

    mutating func functions(ofStack stack: Int64, _ number: (Frame) -> Int32) throws -> [Int32] {
        try findStack.bind(stack)
        guard try findStack.step() else { return [] }
        guard let entries = [StackEntry](encoded: findStack.blob()) else {
            throw findStack.damage("stack \(stack) is not a list of locations")
        }
        findStack.reset()
        var functions: [Int32] = []
        functions.reserveCapacity(entries.count + 4)
        for entry in entries { functions += try place(entry, number) }
        return functions
    }

    private mutating func place(
        _ entry: StackEntry, _ number: (Frame) -> Int32
    ) throws -> [Int32] {
        if let known = places[entry.key] { return known }
        var found: [Int32] = []
        try findPlace.bind(entry.location)
        while try findPlace.step() {
            try found.append(self.number(findPlace, isGuessed: entry.isGuessed, number))
        }
        guard !found.isEmpty else { throw missing(entry) }
        places[entry.key] = found
        return found
    }

    private func missing(_ entry: StackEntry) -> StoreError {
        findPlace.damage("a stack refers to location \(entry.location), which is missing")
    }

    /// The number of the function in a row of `columns`.
    private mutating func number(
        _ rows: Statement, isGuessed: Bool, _ number: (Frame) -> Int32
    ) throws -> Int32 {
        let image = try rows.integer(at: 0)
        let offset = UInt64(bitPattern: try rows.integer(at: 1))
        let kind: CodeAddressKind = try rows.value(at: 2)
        let row = rows.optionalInteger(at: 3)
        let isInlined = try rows.integer(at: 4) != 0
        let isNamed = try row.map { try self.isNamed($0) } ?? false
        let key = Key(
            function: row ?? -1, image: image, offset: isNamed ? 0 : offset,
            flags: kind.rawValue << 2 | (isInlined ? 2 : 0) | (isGuessed ? 1 : 0))
        if let known = numbers[key] { return known }
        let (path, buildID) = try self.image(image)
        let function = try row.map { try self.function($0) }
        var frame = Frame(
            CodeLocation(
                imagePath: path, buildID: buildID, offset: key.offset, kind: kind,
                isGuessed: isGuessed))
        frame.function = function?.name
        frame.rawName = function?.rawName
        frame.file = function?.file
        frame.isInlined = isInlined
        let new = number(frame)
        numbers[key] = new
        return new
    }

    // MARK: Most of a store

    /// Whether these are so large a part of the store's stacks that reading them all, in their order, takes less time
    /// than looking up each of them and its locations.
    func areMost(_ stacks: [Int64]) throws -> Bool {
        let last = try connection.prepare("select max(id) from stack").first().value ?? 0
        return stacks.count > 64 && last / 4 < Int64(stacks.count)
    }

    /// The functions of all these stacks, read in the store's order.
    mutating func functions(
        ofMost wanted: [Int64], _ number: (Frame) -> Int32
    ) throws -> StackFunctions {
        let wanted = KeyNumbers(wanted)
        var numbers = KeyNumbers()
        try forEachStack(wanted) { _, entries in
            for entry in entries { _ = numbers.add(entry.key) }
        }
        let places = try places(numbers, number)
        // Read again: to hold the locations of all stacks would take more memory than their functions.
        var functions = StackFunctions(stackCount: wanted.count)
        var own: [Int32] = []
        try forEachStack(wanted) { stack, entries in
            own.removeAll(keepingCapacity: true)
            for entry in entries {
                guard let number = numbers.number(of: entry.key) else { throw missing(entry) }
                for function in places.functions[places.ranges[Int(number)]] {
                    own.append(function)
                }
            }
            functions.set(own, ofStack: stack)
        }
        return functions
    }

    /// Calls `body` with the number of each wanted stack that the store has, and its locations.
    private func forEachStack(
        _ wanted: KeyNumbers, _ body: (_ stack: Int32, _ entries: [StackEntry]) throws -> Void
    ) throws {
        let rows = try connection.prepare("select id, locations from stack")
        while try rows.step() {
            let id = try rows.integer()
            guard let stack = wanted.number(of: id) else {
                rows.skipRest()
                continue
            }
            guard let entries = [StackEntry](encoded: rows.blob()) else {
                throw rows.damage("stack \(id) is not a list of locations")
            }
            try body(stack, entries)
        }
    }

    /// The functions of locations by their numbers.
    private mutating func places(
        _ numbers: KeyNumbers, _ number: (Frame) -> Int32
    ) throws -> Places {
        var places = Places(count: numbers.count)
        let rows = try connection.prepare(
            """
            select \(Self.columns), location.id
            from location left join location_frame on location_frame.location = location.id
            order by location.id, location_frame.position
            """)
        while try rows.step() {
            let location = try rows.integer(at: 5)
            for isGuessed in [false, true] {
                let entry = StackEntry(location: location, isGuessed: isGuessed)
                guard let place = numbers.number(of: entry.key) else { continue }
                places.append(
                    try self.number(rows, isGuessed: isGuessed, number), to: Int(place))
            }
        }
        if let place = places.ranges.firstIndex(where: \.isEmpty) {
            throw missing(StackEntry(key: numbers.keys[place]))
        }
        return places
    }

    private mutating func isNamed(_ row: Int64) throws(StoreError) -> Bool {
        if let known = areNamed[row] { return known }
        let isNamed = try function(row).name != nil
        areNamed[row] = isNamed
        return isNamed
    }

    private mutating func function(_ row: Int64) throws(StoreError) -> Function {
        if let last, last.row == row { return last.function }
        try findFunction.bind(row)
        var function = Function()
        if try findFunction.step() {
            function = Function(
                name: findFunction.optionalText(), rawName: findFunction.optionalText(),
                file: findFunction.optionalText())
        }
        findFunction.reset()
        last = (row, function)
        return function
    }

    private mutating func image(_ row: Int64) throws(StoreError) -> (String?, BuildID?) {
        if let known = images[row] { return known }
        try findImage.bind(row)
        var image: (path: String?, buildID: BuildID?) = (nil, nil)
        if try findImage.step() {
            image = (
                findImage.optionalText(), findImage.optionalBytes().map(BuildID.init)
            )
        }
        findImage.reset()
        images[row] = image
        return image
    }
}

/// The functions of numbered locations, flat: an array for each would take more memory than what it holds.
private struct Places {
    private(set) var functions: [Int32] = []
    /// By location.
    private(set) var ranges: [Range<Int>]

    init(count: Int) { ranges = Array(repeating: 0..<0, count: count) }

    /// Few locations have several functions. Where another was appended to in between, they move to the end.
    mutating func append(_ function: Int32, to place: Int) {
        if ranges[place].upperBound != functions.count {
            // A copy: a slice of the array that grows would make it copy itself.
            let moved = Array(functions[ranges[place]])
            ranges[place] = functions.count..<functions.count + moved.count
            functions += moved
        }
        functions.append(function)
        ranges[place] = ranges[place].lowerBound..<functions.count
    }
}
