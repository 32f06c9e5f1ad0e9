import Testing

@testable import StallAgent

/// Goal: paths are split as Foundation splits them. Method: cases by hand.
@Suite struct SystemTextTests {
    @Test(arguments: [
        ("/var/app/stalls.sqlite", "/var/app", "stalls", ".sqlite"), ("/stalls", "/", "stalls", ""),
        ("stalls.sqlite", ".", "stalls", ".sqlite"), ("a/.hidden", "a", ".hidden", ""),
        ("/a.b/c.d.e", "/a.b", "c.d", ".e"), ("//x", "/", "x", ""),
    ])
    func `a path has a directory and a name`(
        path: String, directory: String, name: String, suffix: String
    ) {
        #expect(path.directoryPath == directory)
        #expect(path.fileNameParts == (name, suffix))
        #expect(path.fileName == name + suffix)
    }

    @Test func `a mark goes between a file's name and its suffix`() {
        #expect("/var/app/stalls.sqlite".withSuffix("-fork1") == "/var/app/stalls-fork1.sqlite")
        #expect("stalls".withSuffix("-fork1") == "./stalls-fork1")
    }

    @Test func `a file is read whole or not at all`() {
        #expect(fileContent("/proc/sys/kernel/ostype", below: 100) == Array("Linux\n".utf8))
        #expect(fileContent("/proc/sys/kernel/ostype", below: 3) == nil)
        #expect(fileContent("/proc", below: 100) == nil)
        #expect(fileContent("/proc/no-such-file", below: 100) == nil)
    }

    @Test func `only variables that are set have values`() {
        #expect(processEnvironment(["PATH", "STALLWATCH_NO_SUCH"]).keys.sorted() == ["PATH"])
        #expect(currentDirectory().hasPrefix("/"))
    }
}
