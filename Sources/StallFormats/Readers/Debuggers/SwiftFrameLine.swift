// A frame of swift-backtrace's text.
//
//     9 [ra] [thunk]  0x00005645f119bffd protocol witness for Work.run() + 12 in app at /src/app.swift:8:68

internal import StallModel

/// A number, attributes, an address and what is known of it.
struct SwiftFrameLine {
    var address: UInt64
    var kind = CodeAddressKind.interrupted
    var isInlined = false
    var function: String?
    var image: String?
    var file: String?
    var line: Int?

    init?(_ line: ArraySlice<UInt8>) {
        var rest = line
        guard rest.takeWord().decimal(Int32.self) != nil else { return nil }
        var word = rest.takeWord()
        while word.first == UInt8(ascii: "[") {
            if word.elementsEqual("[ra]".utf8) { kind = .returnAddress }
            if word.elementsEqual("[async]".utf8) { kind = .asyncResume }
            if word.elementsEqual("[inlined]".utf8) { isInlined = true }
            word = rest.takeWord()
        }
        guard let address = word.address() else { return nil }
        self.address = address
        takeTail(rest)
    }

    /// ` name + offset in image at file:line:column`, from the end: a name has ` in ` where it is a closure's.
    private mutating func takeTail(_ text: ArraySlice<UInt8>) {
        var rest = text
        if let at = rest.lastRange(of: " at "), let found = rest[at.upperBound...].trimmed.place() {
            if !found.file.hasSuffix("<compiler-generated>") { (file, line) = found }
            rest = rest[..<at.lowerBound]
        } else if rest.ends(with: " at //<compiler-generated>") {
            rest = rest.dropLast(" at //<compiler-generated>".utf8.count)
        }
        if let mark = rest.lastRange(of: " in ") {
            let name = rest[mark.upperBound...].trimmed
            if !name.isEmpty, !name.elementsEqual("???".utf8) { image = name.text }
            rest = rest[..<mark.lowerBound]
        }
        if let plus = rest.lastRange(of: " + "), rest[plus.upperBound...].decimal(Int64.self) != nil
        {
            rest = rest[..<plus.lowerBound]
        }
        let name = rest.trimmed
        if !name.isEmpty, !name.elementsEqual("???".utf8), !name.elementsEqual("<unknown>".utf8) {
            function = name.withoutVersion.text
        }
    }

    func frame(_ images: SortedImages) -> ForeignFrame {
        var frame = ForeignFrame(address: address, in: images, kind: kind)
        if frame.image == nil, let image {
            frame.image = image
            if function != nil { frame.offset = nil }
        }
        (frame.function, frame.file, frame.line) = (function, file, line)
        frame.isInlined = isInlined
        return frame
    }
}

extension [ForeignFrame] {
    /// Gives inlined functions the binary of the one that they are in.
    mutating func completeInlinedImages() {
        for place in indices.reversed() where self[place].isInlined && place + 1 < count {
            self[place].image = self[place].image ?? self[place + 1].image
        }
    }
}
