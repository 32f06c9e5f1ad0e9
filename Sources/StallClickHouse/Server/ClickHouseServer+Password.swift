// Where passwords come from: the environment, or a file. Never from a command line, and never into a message.

internal import Glibc

extension ClickHouseServer {
    /// The server of an address, with the password of its file or of the environment.
    package init(_ address: ClickHouseAddress) throws(ClickHouseError) {
        let variable = getenv(ClickHouseAddress.passwordVariable).map { String(cString: $0) }
        self.init(
            address, password: try address.passwordFile.map(Self.password) ?? variable ?? "")
    }

    /// The first line of a file.
    private static func password(file: String) throws(ClickHouseError) -> String {
        let descriptor = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else {
            throw .noPassword(file: file, reason: String(cString: strerror(errno)))
        }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 4096)
        let count = Glibc.read(descriptor, &bytes, bytes.count)
        guard count >= 0 else {
            throw .noPassword(file: file, reason: String(cString: strerror(errno)))
        }
        let line = bytes[..<count].prefix { $0 != 10 && $0 != 13 }
        guard let password = String(validating: line, as: UTF8.self) else {
            throw .noPassword(file: file, reason: "expected UTF-8")
        }
        return password
    }

    /// Waits.
    package static func sleep(seconds: Double) { usleep(useconds_t(max(0, seconds) * 1_000_000)) }
}
