// Functions that may block where the app forbids it.

internal import StallModel

/// Patterns of functions, and of the images that they are in: one of each must match.
struct AllowRule: Sendable {
    private var functions: [Glob] = []
    private var images: [Glob] = []

    /// `Logger.*`, `function Logger.*` or `image libsqlite3.so*`; several are separated by tabs.
    init(_ text: String) {
        for pattern in text.split(separator: "\t") {
            if let image = pattern.rest(after: "image ") {
                images.append(Glob(image))
            } else {
                functions.append(Glob(pattern.rest(after: "function ") ?? String(pattern)))
            }
        }
    }

    fileprivate func fits(_ frame: Frame) -> Bool {
        guard !functions.isEmpty || !images.isEmpty else { return false }
        let isFunction = functions.contains { frame.function.map($0.matches) ?? false }
        let isImage = images.contains {
            $0.matchesImage(path: frame.imagePath, name: frame.imageName)
        }
        return (isFunction || functions.isEmpty) && (isImage || images.isEmpty)
    }
}

extension Substring {
    fileprivate func rest(after mark: String) -> String? {
        hasPrefix(mark) ? String(dropFirst(mark.count)) : nil
    }
}

extension [AllowRule] {
    /// Whether one of them allows what the function calls.
    func fit(_ frame: Frame) -> Bool { contains { $0.fits(frame) } }
}
