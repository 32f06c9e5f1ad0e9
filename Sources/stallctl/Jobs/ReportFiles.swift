// Files of reports for `ingest`, in any format, plain or in gzip.

internal import Glibc
internal import StallFormats
internal import StallGzip
internal import StallModel
internal import StallQuery
internal import StallStore

/// Reads the reports of files.
struct ReportFiles {
    let options: ReadingOptions

    /// - Parameter waits: Waits until there is something to read; false ends the reading there.
    func feed(
        descriptor: CInt, closesIt: Bool, waits: @escaping () -> Bool
    ) -> any ReportFeed {
        let stream = Self.unpacked(
            ByteStream(descriptor: descriptor, closesIt: closesIt, waits: waits))
        return ForeignReports.feed(stream, options, modified: Self.modified(descriptor))
    }

    /// The format of another program's file; nil where it is none that is read.
    static func format(ofFile path: String) -> ReportFormat? {
        // It may have become a pipe, whose opening would block.
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return nil }
        return ForeignReports.format(
            of: unpacked(ByteStream(descriptor: descriptor, closesIt: true)))
    }

    private static func unpacked(_ stream: ByteStream) -> ByteStream {
        guard stream.peek(2).elementsEqual(GunzipStream.signature),
            let unpacked = GunzipStream({ stream.next($0) })
        else { return stream }
        return ByteStream { unpacked.next($0) }
    }

    /// When a file was written; of a pipe, now.
    private static func modified(_ descriptor: CInt) -> UnixTime {
        var facts = stat()
        guard fstat(descriptor, &facts) == 0, facts.st_mode & S_IFMT == S_IFREG else {
            return .now()
        }
        return UnixTime(
            microseconds: Int64(facts.st_mtim.tv_sec) * 1_000_000
                + Int64(facts.st_mtim.tv_nsec) / 1000)
    }
}
