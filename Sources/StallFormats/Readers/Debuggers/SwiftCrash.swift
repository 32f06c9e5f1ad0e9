// The values of swift-backtrace's JSON that are read. All but the kind may be missing.

internal import StallModel

struct SwiftCrash: Decodable {
    var kind: String
    var timestamp: String?
    /// `Linux (Debian GNU/Linux 12 (bookworm))`.
    var platform: String?
    var threads: [Thread]?
    var omittedThreads: Int64?
    var images: [LoadedImage]?

    struct Thread: Decodable {
        var name: String?
        var crashed: Bool?
        var frames: [StackFrame]?
    }

    struct StackFrame: Decodable {
        var kind: String
        var address: String?
        var symbol: String?
        var image: String?
        var inlined: Bool?
        var sourceLocation: Place?
    }

    struct Place: Decodable {
        var file: String?
        var line: Int64?
    }

    struct LoadedImage: Decodable {
        var name: String?
        var buildId: String?
        var path: String?
        var baseAddress: String?
        var endOfText: String?
    }

    func report(line: Int) -> ForeignReport {
        var report = ForeignReport(kind: .crash, line: line)
        report.start = timestamp.flatMap { try? ReportLine.time($0, "timestamp") }
        report.takeMachine(os: platform, device: nil)
        report.images = (images ?? []).compactMap(\.image)
        report.takeExecutable()
        let sorted = SortedImages(report.images)
        let all = threads ?? []
        report.stalledThread = all.firstIndex { $0.crashed == true }
        report.threads = all.prefix(1 << 16).enumerated().map { place, thread in
            // They have no numbers; the process's first one is the first, if none is omitted.
            var made = ForeignThread(
                number: Int32(truncatingIfNeeded: place), name: thread.name,
                isMain: place == 0 && (omittedThreads ?? 0) == 0)
            if let sample = thread.sample(sorted) { made.samples = [sample] }
            return made
        }
        if let stalled = report.stalledThread, stalled >= report.threads.count {
            report.stalledThread = nil
        }
        return report
    }
}

extension SwiftCrash.LoadedImage {
    fileprivate var image: Image? {
        guard let path = path ?? name, let start = baseAddress?.address,
            let end = endOfText?.address,
            end >= start
        else { return nil }
        return Image(
            path: path, buildID: buildId.flatMap { BuildID(hexadecimal: $0) }, loadAddress: start,
            endAddress: end)
    }
}

extension SwiftCrash.Thread {
    fileprivate func sample(_ images: SortedImages) -> ForeignSample? {
        var sample = ForeignSample()
        for frame in frames ?? [] {
            if let made = frame.frame(images) {
                sample.frames.append(made)
            } else {
                // `omittedFrames` or `truncated`.
                sample.isTruncated = true
            }
        }
        sample.frames.completeInlinedImages()
        return sample.frames.isEmpty && !sample.isTruncated ? nil : sample
    }
}

extension SwiftCrash.StackFrame {
    /// Nil for one that stands for others.
    fileprivate func frame(_ images: SortedImages) -> ForeignFrame? {
        guard let address = address?.address else { return nil }
        let addressKind: CodeAddressKind
        switch kind {
        case "programCounter": addressKind = .interrupted
        case "asyncResumePoint": addressKind = .asyncResume
        case "returnAddress": addressKind = .returnAddress
        default: return nil
        }
        var frame = ForeignFrame(address: address, in: images, kind: addressKind)
        if frame.image == nil, let image {
            frame.image = image
            if symbol != nil { frame.offset = nil }
        }
        frame.function = symbol.flatMap {
            $0.isEmpty ? nil : Array($0.utf8)[...].withoutVersion.text
        }
        frame.isInlined = inlined == true
        if let file = sourceLocation?.file, !file.hasSuffix("<compiler-generated>") {
            frame.file = file
            frame.line = sourceLocation?.line.flatMap { Int32(exactly: $0) }.flatMap {
                $0 > 0 ? Int($0) : nil
            }
        }
        return frame
    }
}

extension String {
    fileprivate var address: UInt64? { Array(utf8)[...].address() }
}
