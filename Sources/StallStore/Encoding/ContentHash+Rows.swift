// The content hashes of rows. Part of the file format: stores of other versions and machines compute the same ones.

package import StallModel

extension ContentHash {
    /// - Parameter run: The run that the image belongs to when it has no build ID.
    package static func image(path: String?, buildID: [UInt8]?, run: UniqueID?) -> Int64 {
        var hash = ContentHash()
        hash.combine(path)
        hash.combine(bytes: buildID ?? [])
        hash.combine(bytes: run?.bytes ?? [])
        return hash.value
    }

    package static func location(image: Int64, offset: Int64, kind: Int64) -> Int64 {
        var hash = ContentHash()
        hash.combine(UInt64(bitPattern: image))
        hash.combine(UInt64(bitPattern: offset))
        hash.combine(UInt64(bitPattern: kind))
        return hash.value
    }

    package static func function(name: String?, rawName: String?, file: String?) -> Int64 {
        var hash = ContentHash()
        hash.combine(name)
        hash.combine(rawName)
        hash.combine(file)
        return hash.value
    }

    /// Not generic: it is called for each stack from other modules, for which a generic function is not specialized.
    package static func stack(
        _ entries: [(location: Int64, isGuessed: Bool)], isTruncated: Bool
    ) -> Int64 {
        var hash = ContentHash()
        hash.combine(isTruncated ? 1 : 0)
        for entry in entries {
            hash.combine(UInt64(bitPattern: entry.location))
            hash.combine(entry.isGuessed ? 1 : 0)
        }
        return hash.value
    }
}
