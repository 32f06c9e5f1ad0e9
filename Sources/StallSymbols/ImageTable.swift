// Finds the image of an address. Queries the loader, because /proc/self/maps also shows files that were mapped for
// reading, and mistaking one of those for code gives the wrong function.

internal import CLinux
internal import Glibc
package import StallModel

/// The images of this process at one instant.
package struct ImageTable: Sendable {
    /// In the loader's order: the executable first.
    package let images: [Image]
    private let byAddress: SortedImages

    package init(images: [Image]) {
        self.images = images
        byAddress = SortedImages(images)
    }

    /// The images that are loaded now, and those that were unloaded lately and whose place is still free: stacks may
    /// lead through them.
    ///
    /// **Thread safety:** any thread. It holds the loader's list lock without allocating, and does not wait for a
    /// dlopen that runs a slow constructor.
    package static func current() -> ImageTable {
        guard let list = stall_image_list_create() else { return ImageTable(images: []) }
        defer { stall_image_list_free(list) }
        return ImageTable(
            images: (0..<stall_image_list_count(list)).map { Image(stall_image_list_get(list, $0)) }
        )
    }

    /// Remembers the images that are loaded now, for when they are not. At once if none was loaded since the last time.
    ///
    /// - Returns: Whether there was one.
    package static func rememberLoaded() -> Bool { stall_image_list_remember() }

    /// The image whose mapping contains an address.
    package func image(containing address: UInt64) -> Image? { byAddress.image(at: address) }

    /// Locates every address of a stack in its image. A return address belongs to the image of its call.
    ///
    /// If a function was called and has since tail-called the function above it, which leaves no frame, its entry is
    /// inserted between the two as a guess: the call is certain, what followed is not.
    package func locate(_ stack: CapturedStack) -> [CodeLocation] {
        var calls = stack.addresses.map {
            stall_call(
                address: $0.script == nil ? $0.lookupAddress : 0, function: 0, entered: 0)
        }
        stall_calls_read(&calls, calls.count)
        var locations: [CodeLocation] = []
        for (index, address) in stack.addresses.enumerated() {
            if let script = address.script {
                var location = script.location
                location.isGuessed = address.isGuessed
                locations.append(location)
                continue
            }
            if index > 0, address.kind == .returnAddress, !address.isGuessed {
                let (callee, entered) = (calls[index - 1].function, calls[index].entered)
                if callee != 0, entered != 0, callee != entered {
                    let inferred = CodeAddress(entered, .interrupted, isGuessed: true)
                    locations.append(CodeLocation(inferred, in: image(containing: entered)))
                }
            }
            locations.append(CodeLocation(address, in: image(containing: address.lookupAddress)))
        }
        return locations
    }
}

extension Image {
    fileprivate init(_ image: stall_image) {
        let buildID = UnsafeBufferPointer(start: image.build_id, count: Int(image.build_id_count))
        let path = String(cString: image.path)
        self.init(
            path: image.is_vdso
                ? "[vdso]" : image.is_main || path.isEmpty ? executablePath() : path,
            buildID: buildID.isEmpty ? nil : BuildID(bytes: buildID),
            loadAddress: image.load_address, endAddress: image.end_address)
    }
}

/// The path that this process was started from, even if the file has been replaced since.
func executablePath() -> String {
    var buffer = [UInt8](repeating: 0, count: Int(PATH_MAX))
    let count = buffer.withUnsafeMutableBytes {
        readlink("/proc/thread-self/exe", $0.bindMemory(to: CChar.self).baseAddress!, $0.count)
    }
    guard count > 0 else { return "" }
    let path = String(decoding: buffer[..<count], as: UTF8.self)
    let deleted = " (deleted)"
    return path.hasSuffix(deleted) ? String(path.dropLast(deleted.count)) : path
}
