// Names come from other programs and files. Characters that a terminal would act on (escape sequences, line breaks,
// direction changes) are printed as escapes.

internal import StallModel

extension String {
    /// The text with every terminal control character as an escape: `\n`, `\u{1B}`.
    ///
    /// Returned unchanged if there is none, which is nearly always.
    var printable: String {
        guard unicodeScalars.contains(where: \.steersTerminal) else { return self }
        var result = ""
        for scalar in unicodeScalars {
            if scalar.steersTerminal {
                result += scalar.visibleEscape
            } else {
                result.unicodeScalars.append(scalar)
            }
        }
        return result
    }
}

extension Unicode.Scalar {
    /// `\n`, `\r`, `\t` and `\0` for those, else the number as Swift writes it: `\u{202E}`.
    fileprivate var visibleEscape: String {
        switch value {
        case 0x00: "\\0"
        case 0x09: "\\t"
        case 0x0a: "\\n"
        case 0x0d: "\\r"
        default: "\\u{" + String(value, radix: 16, uppercase: true) + "}"
        }
    }
}
