// Compression by the system's gzip, which every Debian has: a library for one option would be one more to install.

internal import Glibc

/// A gzip process between a writer and a file.
struct Compressor {
    /// What is written here ends up compressed in the file.
    let input: CInt
    private let file: CInt
    private let process: pid_t

    /// - Parameter file: Open for writing.
    init(to file: CInt) throws(OutputError) {
        var ends: [CInt] = [0, 0]
        guard pipe2(&ends, O_CLOEXEC) == 0 else { throw .failed("gzip", errno: errno) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, ends[0], STDIN_FILENO)
        posix_spawn_file_actions_adddup2(&actions, file, STDOUT_FILENO)
        var process = pid_t()
        // No name and no time in the header: the same reports give the same file.
        var arguments = ["gzip", "--no-name", "--stdout"].map { strdup($0) } + [nil]
        defer { for argument in arguments { free(argument) } }
        let errno = posix_spawnp(&process, "gzip", &actions, nil, &arguments, environ)
        close(ends[0])
        guard errno == 0 else {
            close(ends[1])
            throw .notCompressed(String(cString: strerror(errno)))
        }
        input = ends[1]
        self.file = file
        self.process = process
    }

    /// Waits until all is in the file, which is given back.
    func finish() throws(OutputError) -> CInt {
        close(input)
        var status: CInt = 0
        while waitpid(process, &status, 0) < 0 {
            guard errno == EINTR else { throw .failed("gzip", errno: errno) }
        }
        guard status == 0 else { throw .notCompressed("it ended with status \(status >> 8)") }
        return file
    }
}
