import Foundation
import StallModel
import StallSymbols
import Testing

/// Goal: a place in this very process gets the name of the function that is there.
/// Method: addresses whose functions the test knows itself, and `nm` as the judge for whole libraries.
@Suite struct SymbolizerTests {
    let images = ImageTable.current()

    private func frame(at address: UInt64, _ kind: CodeAddressKind = .interrupted) throws -> Frame {
        let stack = CapturedStack(
            addresses: [CodeAddress(address, kind)], isTruncated: false, method: .signalFree)
        let location = try #require(images.locate(stack).first)
        return try #require(Symbolizer().frames(for: [location], images: images)[location]?.first)
    }

    @Test func `a return address is named after the function it returns to`() throws {
        let address = Thread.callStackReturnAddresses[1].uint64Value
        let frame = try frame(at: address, .returnAddress)
        #expect(
            frame.function == "SymbolizerTests.a return address is named after the function it returns to()"
                || frame.function?.contains("a return address is named") == true,
            "\(String(describing: frame))")
        #expect(frame.rawName?.hasPrefix("$s17StallSymbolsTests") == true)
        #expect(frame.imagePath == images.images[0].path)
        #expect(frame.buildID == images.images[0].buildID)
    }

    @Test(arguments: ["usleep", "poll", "nanosleep", "qsort", "getaddrinfo"])
    func `a function of libc has its plain name`(name: String) throws {
        let address = try #require(dlsym(UnsafeMutableRawPointer(bitPattern: 0), name))
        let frame = try frame(at: UInt64(UInt(bitPattern: address)) + 1)
        #expect(frame.function == name)
        #expect(frame.imageName?.hasPrefix("libc") == true)
    }
}
