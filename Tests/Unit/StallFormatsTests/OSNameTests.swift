import StallModel
import Testing

@testable import StallFormats

/// Goal: reports of one system make one group, whatever format they are in. Method: a name as writers state it.
@Suite struct OSNameTests {
    @Test(arguments: [
        ("iPhone OS 17.4.1 (21E236)", "iOS 17.4.1"), ("iOS 17.4.1", "iOS 17.4.1"),
        ("macOS 14.4 (23E214)", "macOS 14.4"), ("Mac OS X 14.4 (23E214)", "macOS 14.4"),
        ("macOS 15.4 (Build 24E248)", "macOS 15.4"),
        ("Mac OS X Version 10.6 (1A)", "Mac OS X 10.6"),
        ("macOS 10.15.7", "Mac OS X 10.15.7"), ("Mac OS X 10.15.7 (19H15)", "Mac OS X 10.15.7"),
        ("Apple tvOS 15.1 (19J572)", "tvOS 15.1"), ("watchOS 10.4 (21T216)", "watchOS 10.4"),
        ("Linux (Debian GNU/Linux 12 (bookworm))", "Debian GNU/Linux 12"),
        ("Linux (Ubuntu 22.04.3 LTS)", "Ubuntu 22.04"), ("Linux ()", "Linux"), ("Linux", "Linux"),
        ("Linux (Alpine Linux v3.18)", "Alpine Linux 3.18"), ("Linux 6.1.0-18-amd64", "Linux 6.1"),
        ("Android 13", "Android 13"), ("Windows 10.0.19041", "Windows 10.0.19041"),
        ("visionOS 1.1 (21O211)", "visionOS 1.1"),
    ])
    func `a system has one name`(stated: String, normal: String) {
        #expect(OSName.normal(stated) == normal)
        #expect(OSName.normal(normal) == normal)
    }

    @Test(arguments: [
        "", " ", "???", "Unknown (7) 1.0 (???)", "unknown", "(21E236)", "17.4", "( (",
    ])
    func `what names no system is none`(stated: String) {
        #expect(OSName.normal(stated) == nil)
    }

    @Test func `an iPad's system is its own since version 13`() {
        #expect(OSName.normal("iPhone OS 17.4 (21E219)", device: "iPad13,4") == "iPadOS 17.4")
        #expect(OSName.normal("iPadOS 17.4", device: "iPad13,4") == "iPadOS 17.4")
        #expect(OSName.normal("iPhone OS 12.5 (16H62)", device: "iPad4,1") == "iOS 12.5")
    }

    @Test(arguments: [nil, "", "???", " ", "unknown", "17"] as [String?])
    func `an unknown device is none`(stated: String?) {
        var report = ForeignReport(kind: .hang, line: 1)
        report.takeMachine(os: "iOS 17", device: stated)
        #expect(report.device == nil && report.os == "iOS 17")
    }
}
