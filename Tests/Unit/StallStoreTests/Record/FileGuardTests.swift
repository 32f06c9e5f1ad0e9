import CLinux
import Foundation
import TestSupport
import Testing

@testable import StallStore

/// Goal: SQLite neither writes into a file of the app's, nor locks or closes it, after the app has closed the store's
/// descriptors and has its own files under their numbers. Method: at every step of a transaction; in processes of their
/// own, because other tests open files meanwhile.
@Suite struct FileGuardTests {
    @Test(arguments: [0, 2, 3]) func `a file of the app's in the place of a store's is left alone`(
        _ step: Int
    ) async {
        await #expect(processExitsWith: .success) { [step] in
            try withTemporaryDirectory { directory in
                let store = directory.path + "/store.sqlite"
                var files: [CInt] = []
                FileGuard.run {
                    var connection: Connection? = try? Connection(
                        to: store, as: store, .readWrite)
                    let steps = [
                        "pragma journal_mode = wal; create table place (name text)",
                        "begin immediate", "insert into place values ('somewhere')", "commit",
                    ]
                    for (index, sql) in steps.prefix(step + 1).enumerated() {
                        if index == step { files = replaceDescriptors(of: store, in: directory) }
                        try? connection?.execute(sql)
                    }
                    connection = nil
                }
                guard !files.isEmpty else { exit(1) }
                for file in files {
                    var facts = stat()
                    guard fstat(file, &facts) == 0 else { exit(2) }
                    guard facts.st_size == 0 else { exit(3) }
                    guard !isLocked(facts) else { exit(4) }
                }
                exit(0)
            }
        }
    }

    @Test func `a store of the app's own is not guarded`() throws {
        try withTemporaryDirectory { directory in
            FileGuard.run {}
            let store = directory.path + "/app.sqlite"
            let connection = try Connection(to: store, as: store, .readWrite)
            try connection.execute("create table place (name text)")
            #expect(!descriptors(of: store).contains { stall_descriptor_is_own($0) })
            try connection.close()
            #expect(descriptors(of: store).isEmpty)
        }
    }
}

/// The numbers of the process that lead to files whose paths begin so.
private func descriptors(of path: String) -> [CInt] {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
    return names.compactMap { CInt($0) }.filter {
        let target = try? FileManager.default.destinationOfSymbolicLink(
            atPath: "/proc/self/fd/\($0)")
        return target?.hasPrefix(path) == true
    }
}

/// Closes the store's descriptors and opens empty files under their numbers.
private func replaceDescriptors(of store: String, in directory: URL) -> [CInt] {
    descriptors(of: store).map { number in
        let file = open(directory.path + "/own-\(number)", O_RDWR | O_CREAT, 0o600)
        dup2(file, number)
        close(file)
        return number
    }
}

private func isLocked(_ file: stat) -> Bool {
    let locks = (try? String(contentsOfFile: "/proc/locks", encoding: .utf8)) ?? ""
    return locks.contains(":\(file.st_ino) ")
}
