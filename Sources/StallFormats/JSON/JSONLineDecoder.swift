// Decodes `Decodable` values from a JSON document, as Foundation's decoder does, without a dictionary for each object.
// The
// position of a value in the line is found for errors only.

internal import Foundation

/// Decodes lines of JSON.
enum JSONLineDecoder {
    static func decode<Value: Decodable>(_ type: Value.Type, from bytes: [UInt8]) throws -> Value {
        try JSONDocument(bytes).decode(type, 0)
    }
}

extension JSONDocument {
    /// Any value; those of the standard library by their own way.
    func decode<Value: Decodable>(_ type: Value.Type, _ index: Int) throws -> Value {
        if type == String.self { return try string(index) as! Value }
        if type == Decimal.self { return try decimal(index) as! Value }
        return try Value(from: JSONValueDecoder(document: self, index: index))
    }
}

/// The decoder of one value.
private struct JSONValueDecoder: Decoder {
    let document: JSONDocument
    let index: Int
    var codingPath: [any CodingKey] { document.path(to: index) }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    func container<Key>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        guard document.kind(index) == .object else {
            throw document.mismatch([String: Any].self, index)
        }
        return KeyedDecodingContainer(JSONObjectContainer(document: document, index: index))
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        guard document.kind(index) == .array else { throw document.mismatch([Any].self, index) }
        return JSONArrayContainer(document: document, index: index)
    }

    func singleValueContainer() -> any SingleValueDecodingContainer {
        JSONValueContainer(document: document, index: index)
    }
}

private struct JSONObjectContainer<Key: CodingKey>: KeyedDecodingContainerProtocol {
    let document: JSONDocument
    let index: Int
    var codingPath: [any CodingKey] { document.path(to: index) }
    var allKeys: [Key] {
        document.keys(of: index).compactMap { Key(stringValue: document.text($0)) }
    }

    private func find(_ key: Key) -> Int? { document.value(of: key.stringValue, in: index) }

    private func value(_ key: Key) throws -> Int {
        guard let found = find(key) else {
            throw DecodingError.keyNotFound(
                key, DecodingError.Context(codingPath: codingPath, debugDescription: "no such key"))
        }
        return found
    }

    /// Nil also for null.
    private func present(_ key: Key) -> Int? {
        find(key).flatMap { document.isNull($0) ? nil : $0 }
    }

    func contains(_ key: Key) -> Bool { find(key) != nil }
    func decodeNil(forKey key: Key) throws -> Bool { document.isNull(try value(key)) }

    func decode(_: Bool.Type, forKey key: Key) throws -> Bool { try document.bool(value(key)) }
    func decode(_: String.Type, forKey key: Key) throws -> String {
        try document.string(value(key))
    }
    func decode(_: Double.Type, forKey key: Key) throws -> Double {
        try document.double(value(key))
    }
    func decode(_ type: Int.Type, forKey key: Key) throws -> Int {
        try document.integer(type, value(key))
    }
    func decode(_ type: Int32.Type, forKey key: Key) throws -> Int32 {
        try document.integer(type, value(key))
    }
    func decode(_ type: Int64.Type, forKey key: Key) throws -> Int64 {
        try document.integer(type, value(key))
    }
    func decode(_ type: UInt64.Type, forKey key: Key) throws -> UInt64 {
        try document.integer(type, value(key))
    }
    func decode<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value {
        try document.decode(type, value(key))
    }

    func decodeIfPresent(_: Bool.Type, forKey key: Key) throws -> Bool? {
        try present(key).map(document.bool)
    }
    func decodeIfPresent(_: String.Type, forKey key: Key) throws -> String? {
        try present(key).map(document.string)
    }
    func decodeIfPresent(_: Double.Type, forKey key: Key) throws -> Double? {
        try present(key).map(document.double)
    }
    func decodeIfPresent(_ type: Int.Type, forKey key: Key) throws -> Int? {
        try present(key).map { try document.integer(type, $0) }
    }
    func decodeIfPresent(_ type: Int64.Type, forKey key: Key) throws -> Int64? {
        try present(key).map { try document.integer(type, $0) }
    }
    func decodeIfPresent<Value: Decodable>(
        _ type: Value.Type, forKey key: Key
    ) throws -> Value? {
        try present(key).map { try document.decode(type, $0) }
    }

    func nestedContainer<Nested>(
        keyedBy type: Nested.Type, forKey key: Key
    ) throws -> KeyedDecodingContainer<Nested> {
        try decoder(key).container(keyedBy: type)
    }
    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
        try decoder(key).unkeyedContainer()
    }
    func superDecoder() throws -> any Decoder {
        JSONValueDecoder(document: document, index: index)
    }
    func superDecoder(forKey key: Key) throws -> any Decoder { try decoder(key) }

    private func decoder(_ key: Key) throws -> JSONValueDecoder {
        JSONValueDecoder(document: document, index: try value(key))
    }
}

private struct JSONArrayContainer: UnkeyedDecodingContainer {
    let document: JSONDocument
    let index: Int
    /// The index of the next element.
    private var place: Int
    private(set) var currentIndex = 0
    let count: Int?

    init(document: JSONDocument, index: Int) {
        self.document = document
        self.index = index
        place = index + 1
        var (count, next) = (0, index + 1)
        while next < document.next(index) {
            count += 1
            next = document.next(next)
        }
        self.count = count
    }

    var codingPath: [any CodingKey] { document.path(to: index) }
    var isAtEnd: Bool { place >= document.next(index) }

    private func element(_ type: any Any.Type) throws -> Int {
        guard !isAtEnd else {
            throw DecodingError.valueNotFound(
                type,
                DecodingError.Context(
                    codingPath: codingPath + [JSONKey(currentIndex)], debugDescription: "no more"))
        }
        return place
    }

    /// Continues behind the element once it was read.
    private mutating func take<Value>(_ read: (Int) throws -> Value) throws -> Value {
        let place = try element(Value.self)
        let value = try read(place)
        self.place = document.next(place)
        currentIndex += 1
        return value
    }

    mutating func decodeNil() throws -> Bool {
        let isNull = document.isNull(try element(Never.self))
        if isNull { _ = try take { $0 } }
        return isNull
    }

    mutating func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
        try take { [document] in try document.decode(type, $0) }
    }

    mutating func nestedContainer<Nested>(
        keyedBy type: Nested.Type
    ) throws -> KeyedDecodingContainer<Nested> {
        try take { [document] in
            try JSONValueDecoder(document: document, index: $0).container(keyedBy: type)
        }
    }
    mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
        try take { [document] in
            try JSONValueDecoder(document: document, index: $0).unkeyedContainer()
        }
    }
    mutating func superDecoder() throws -> any Decoder {
        try take { [document] in JSONValueDecoder(document: document, index: $0) }
    }
}

private struct JSONValueContainer: SingleValueDecodingContainer {
    let document: JSONDocument
    let index: Int
    var codingPath: [any CodingKey] { document.path(to: index) }

    func decodeNil() -> Bool { document.isNull(index) }
    func decode(_: Bool.Type) throws -> Bool { try document.bool(index) }
    func decode(_: String.Type) throws -> String { try document.string(index) }
    func decode(_: Double.Type) throws -> Double { try document.double(index) }
    func decode(_: Float.Type) throws -> Float { Float(try document.double(index)) }
    func decode(_ type: Int.Type) throws -> Int { try document.integer(type, index) }
    func decode(_ type: Int8.Type) throws -> Int8 { try document.integer(type, index) }
    func decode(_ type: Int16.Type) throws -> Int16 { try document.integer(type, index) }
    func decode(_ type: Int32.Type) throws -> Int32 { try document.integer(type, index) }
    func decode(_ type: Int64.Type) throws -> Int64 { try document.integer(type, index) }
    func decode(_ type: UInt.Type) throws -> UInt { try document.integer(type, index) }
    func decode(_ type: UInt8.Type) throws -> UInt8 { try document.integer(type, index) }
    func decode(_ type: UInt16.Type) throws -> UInt16 { try document.integer(type, index) }
    func decode(_ type: UInt32.Type) throws -> UInt32 { try document.integer(type, index) }
    func decode(_ type: UInt64.Type) throws -> UInt64 { try document.integer(type, index) }
    func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
        try document.decode(type, index)
    }
}
