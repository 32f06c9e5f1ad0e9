// Functions that may block where the app forbids it.

internal import Glibc
internal import StallModel

/// A pattern of functions, or of the images that they are in.
struct AllowRule: Sendable {
    private let pattern: String
    private let isOfImage: Bool

    /// `Logger.*`, or `image libsqlite3.so*`.
    init(_ text: String) {
        let mark = "image "
        isOfImage = text.hasPrefix(mark)
        pattern = isOfImage ? String(text.dropFirst(mark.count)) : text
    }

    fileprivate func fits(_ frame: Frame) -> Bool {
        guard let name = isOfImage ? frame.imageName : frame.function else { return false }
        return fnmatch(pattern, name, 0) == 0
    }
}

extension [AllowRule] {
    /// Whether one of them allows what the function calls.
    func fit(_ frame: Frame) -> Bool { contains { $0.fits(frame) } }
}
