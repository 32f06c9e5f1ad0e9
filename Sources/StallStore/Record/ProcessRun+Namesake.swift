// Runs of one identifier that are of different processes: a source copied it, or made it up.

package import StallModel

extension ProcessRun {
    /// The identifier of this run's own row where another source has the identifier for another app, version or host.
    ///
    /// A UUID of version 8, by RFC 9562 "for experimental or vendor-specific use". The same for all sources that say the
    /// same.
    package var namesake: UniqueID {
        Self.namesake(of: id, app: app, version: version, host: host)
    }

    /// The same without the rest of the run.
    package static func namesake(
        of id: UniqueID, app: String, version: String, host: String
    ) -> UniqueID {
        func hash(_ part: UInt64) -> UInt64 {
            var hash = ContentHash()
            hash.combine(part)
            hash.combine(bytes: id.bytes)
            for text in [app, version, host] { hash.combine(text) }
            return UInt64(bitPattern: hash.value)
        }
        var bytes = [hash(0), hash(1)].flatMap { word in
            (0..<8).map { UInt8(truncatingIfNeeded: word >> UInt64(56 - $0 * 8)) }
        }
        bytes[6] = bytes[6] & 0x0f | 0x80
        bytes[8] = bytes[8] & 0x3f | 0x80
        return UniqueID(bytes: bytes)!
    }
}
