// Progress bar on stderr. Prints nothing unless stderr is a terminal.

internal import Glibc
internal import StallIngest

struct ProgressLine {
    private let isShown = isatty(STDERR_FILENO) == 1

    func show(_ progress: IngestProgress) {
        guard isShown else { return }
        let width = 24
        let done =
            progress.fileCount == 0 ? width : width * progress.filesDone / progress.fileCount
        let bar = String(repeating: "=", count: done) + String(repeating: " ", count: width - done)
        write(
            "[\(bar)] \(progress.filesDone) of \(progress.fileCount) files, "
                + "\(progress.reportsImported) reports")
    }

    func clear() { if isShown { write("") } }

    private func write(_ text: String) {
        let line = Array("\r\u{1b}[K\(text)".utf8)
        _ = line.withUnsafeBytes { Glibc.write(STDERR_FILENO, $0.baseAddress, $0.count) }
    }
}
