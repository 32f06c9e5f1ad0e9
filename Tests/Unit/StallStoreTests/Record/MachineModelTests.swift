import Testing

@testable import StallStore

/// Goal: an agent says what it runs on in few words, and nothing that a file holds does harm.
/// Method: the files' contents are given.
@Suite struct MachineModelTests {
    private func model(_ files: [String: String]) -> MachineModel {
        MachineModel.current { files[$0] }
    }

    @Test(arguments: [
        ("NAME=\"Debian GNU/Linux\"\nVERSION_ID=\"12\"\n", "Debian GNU/Linux 12"),
        ("# a comment\nID=alpine\nVERSION_ID=3.18.4\nNAME='Alpine Linux'", "Alpine Linux 3.18.4"),
        ("NAME=\"Arch Linux\"\nBUILD_ID=rolling\n", "Arch Linux"),
        ("NAME=\"a \\\"b\\\" \\$c\"\r\nVERSION_ID=1\r\n", "a \"b\" $c 1"),
        ("  NAME=Two\nNAME=Three\nVERSION_ID=\"\"", "Three"),
        ("NAME=\"unclosed\nVERSION_ID=9", "unclosed 9"),
        ("NAME=\"\u{1b}[31mred\u{7}\"\nVERSION_ID=1", "[31mred 1"),
    ])
    func `a system is its release's name and version`(release: String, system: String) {
        #expect(model(["/etc/os-release": release]).os == system)
        #expect(model(["/usr/lib/os-release": release]).os == system)
    }

    @Test(arguments: ["", "VERSION_ID=12", "NAME=", "NAME=\"\"", "NAME\n=\n===", "\u{0}\u{0}"])
    func `without a release's name it is the kernel's`(release: String) {
        let found = model(["/etc/os-release": release]).os
        #expect(found?.wholeMatch(of: /Linux \d+\.\d+/) != nil, "\(found ?? "none")")
        #expect(model([:]).os == found)
    }

    @Test func `a name is one line within a store's limit`() throws {
        let long = String(repeating: "ö", count: 4000)
        let found = model(["/etc/os-release": "NAME=\(long)", "/proc/device-tree/model": long])
        #expect(try #require(found.os).utf8.count == ValueLimits.nameBytes)
        #expect(try #require(found.device).utf8.count == ValueLimits.nameBytes)
    }

    @Test func `a device is what its firmware or its device tree says`() {
        let dmi = "/sys/class/dmi/id/product_name", tree = "/proc/device-tree/model"
        #expect(model([dmi: "ThinkPad X1\n"]).device == "ThinkPad X1")
        #expect(
            model([dmi: " \n", tree: "Raspberry Pi 4 Model B\u{0}"]).device
                == "Raspberry Pi 4 Model B")
        #expect(model([dmi: "a", tree: "b"]).device == "a")
        #expect(model([:]).device == nil)
    }

    @Test func `this machine has a system`() { #expect(MachineModel.current().os != nil) }
}
