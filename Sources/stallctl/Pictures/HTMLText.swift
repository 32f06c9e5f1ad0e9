// Untrusted names in a page: shown, never interpreted.

/// A piece of a page. Text that it was given has no meaning to a browser.
struct HTML {
    private(set) var text = ""

    init() {}

    /// Untrusted text, as text.
    init(_ name: String) { text = name.forPicture.escapedForHTML }

    /// An element.
    init(_ tag: String, _ attributes: [(String, String)] = [], _ children: HTML...) {
        text = "<\(tag)"
        for (name, value) in attributes {
            text += " \(name)=\"\(value.forPicture.escapedForHTML)\""
        }
        text += ">" + children.map(\.text).joined() + "</\(tag)>"
    }

    init(joining parts: [HTML], _ separator: String = "") {
        text = parts.map(\.text).joined(separator: separator)
    }

    static func + (left: HTML, right: HTML) -> HTML {
        var sum = left
        sum.text += right.text
        return sum
    }
}

extension String {
    /// The name as pictures show it: on one line, with control characters as escapes, and no longer than is readable.
    var forPicture: String {
        let shown = printable
        guard shown.utf8.count > 400 else { return shown }
        return shown.prefix(260) + "…" + shown.suffix(100)
    }

    fileprivate var escapedForHTML: String {
        guard utf8.contains(where: { [0x26, 0x3c, 0x3e, 0x22, 0x27].contains($0) }) else {
            return self
        }
        var bytes: [UInt8] = []
        for byte in utf8 {
            switch byte {
            case 0x26: bytes += "&amp;".utf8
            case 0x3c: bytes += "&lt;".utf8
            case 0x3e: bytes += "&gt;".utf8
            case 0x22: bytes += "&quot;".utf8
            case 0x27: bytes += "&#39;".utf8
            default: bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
