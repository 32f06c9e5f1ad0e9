// The encoding of a port's messages as bytes. No format is built in but the plain ones: an app brings the encoder that
// it uses elsewhere.

/// How messages become bytes and bytes become messages.
///
///     let jobs = MessageCoding<Job>(                       // Job is Codable
///         encode: { Array(try JSONEncoder().encode($0)) },
///         decode: { try JSONDecoder().decode(Job.self, from: Data($0)) })
public struct MessageCoding<Message>: Sendable {
    let encode: @Sendable (Message) throws -> [UInt8]
    let decode: @Sendable ([UInt8]) throws -> Message

    /// Makes a coding.
    ///
    /// - Parameters:
    ///   - encode: Called by the thread that sends.
    ///   - decode: Called on the loop's thread, with bytes that the peer may have made up. When it throws, the connection
    ///     ends with ``MessagePortEnd/undecodable(_:)``.
    public init(
        encode: @escaping @Sendable (Message) throws -> [UInt8],
        decode: @escaping @Sendable ([UInt8]) throws -> Message
    ) {
        self.encode = encode
        self.decode = decode
    }
}

extension MessageCoding where Message == [UInt8] {
    /// Messages that are bytes already.
    public static var bytes: MessageCoding { MessageCoding(encode: { $0 }, decode: { $0 }) }
}

extension MessageCoding where Message == String {
    /// Messages that are text, in UTF-8; other bytes are undecodable.
    public static var text: MessageCoding {
        MessageCoding(
            encode: { Array($0.utf8) },
            decode: { bytes in
                guard let text = String(validating: bytes, as: UTF8.self) else {
                    throw NotText()
                }
                return text
            })
    }
}

private struct NotText: Error, CustomStringConvertible { var description: String { "not UTF-8" } }
