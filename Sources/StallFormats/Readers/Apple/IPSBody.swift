// The body of a crash report as JSON.

internal import StallModel

/// A body of type 309.
struct IPSBody {
    private let body: JSONNode
    private let metadata: JSONNode
    private let images: [UsedImage]

    private struct UsedImage {
        var path: String?
        var uuid: BuildID?
        var base: UInt64
        var size: UInt64
    }

    init(_ body: JSONNode, metadata: JSONNode) {
        self.body = body
        self.metadata = metadata
        images = (body["usedImages"]?.elements ?? []).map { image in
            UsedImage(
                path: image["path"]?.text ?? image["name"]?.text,
                uuid: image["uuid"]?.text.flatMap(BuildID.init(uuid:)),
                base: image["base"]?.integer(UInt64.self) ?? 0,
                size: image["size"]?.integer(UInt64.self) ?? 0)
        }
    }

    func report(line: Int) -> ForeignReport {
        var report = ForeignReport(kind: .crash, line: line)
        report.app = body["procName"]?.text ?? ""
        report.version = AppleHeader.version(
            body["bundleInfo"]?["CFBundleShortVersionString"]?.word,
            build: body["bundleInfo"]?["CFBundleVersion"]?.word)
        report.pid = body["pid"]?.integer(Int32.self)
        report.start = body["captureTime"]?.text.flatMap(AppleHeader.time)
        report.takeMachine(
            os: body["osVersion"]?["train"]?.text, device: body["modelCode"]?.text)
        report.images = images.compactMap { image in
            let (end, isWrong) = image.base.addingReportingOverflow(image.size)
            guard let path = image.path, image.base > 0, image.size > 0, !isWrong else {
                return nil
            }
            return Image(
                path: path, buildID: image.uuid, loadAddress: image.base, endAddress: end)
        }
        let main = body["procPath"]?.text ?? report.app
        report.buildID = images.first { $0.path == main }?.uuid
        let threads = body["threads"]?.elements ?? []
        report.threads = threads.enumerated().map(thread)
        judge(&report, threads)
        return report
    }

    private func judge(_ report: inout ForeignReport, _ threads: [JSONNode]) {
        let main = report.threads.firstIndex { $0.isMain }
        if report.judge(termination: reasons, main: main) { return }
        if body["exception"]?["type"]?.text?.contains("EXC_RESOURCE") == true {
            report.kind = .other("a report of used resources")
        }
        let faulting = body["faultingThread"]?.integer(Int.self)
        report.stalledThread =
            faulting.flatMap { threads.indices.contains($0) ? $0 : nil }
            ?? threads.firstIndex { $0["triggered"]?.isTrue == true } ?? main
    }

    /// All that the report says about the end of the process.
    private var reasons: String {
        guard let termination = body["termination"] else { return "" }
        var reasons =
            termination["code"]?.integer(UInt64.self).map { ["0x" + String($0, radix: 16)] } ?? []
        for key in ["code", "indicator", "reason"] {
            if let text = termination[key]?.text { reasons.append(text) }
        }
        for key in ["details", "reasons"] {
            reasons += (termination[key]?.elements ?? []).compactMap(\.text)
        }
        return reasons.joined(separator: "\n")
    }

    private func thread(_ index: Int, _ thread: JSONNode) -> ForeignThread {
        let queue = thread["queue"]?.text
        var result = ForeignThread(
            number: thread["id"]?.integer(Int32.self) ?? Int32(clamping: index),
            name: thread["name"]?.text ?? queue,
            isMain: index == 0 || queue == "com.apple.main-thread")
        var sample = ForeignSample()
        let frames = (thread["frames"]?.elements ?? []).filter(\.isObject)
        var kind = CodeAddressKind.interrupted
        for node in frames.prefix(SampledTree.frameLimit) {
            let frame = frame(node, kind)
            sample.frames.append(frame)
            // Inlined calls are at the address of the call that they are in.
            if !frame.isInlined { kind = .returnAddress }
        }
        sample.isTruncated = frames.count > SampledTree.frameLimit
        if !sample.frames.isEmpty { result.samples = [sample] }
        return result
    }

    private func frame(_ node: JSONNode, _ kind: CodeAddressKind) -> ForeignFrame {
        var frame = ForeignFrame()
        frame.kind = kind
        frame.offset = node["imageOffset"]?.integer(UInt64.self)
        if let index = node["imageIndex"]?.integer(Int.self), images.indices.contains(index) {
            let image = images[index]
            frame.image = image.path
            frame.buildID = image.uuid
            // In no binary: its offset is from the address that its entry has.
            if image.path == nil, image.uuid == nil {
                frame.offset = frame.offset.map { $0 &+ image.base }
            }
        }
        frame.function = node["symbol"]?.text
        frame.file = node["sourceFile"]?.text
        frame.line = node["sourceLine"]?.integer(Int.self).flatMap { $0 > 0 ? $0 : nil }
        frame.isInlined = node["inline"]?.isTrue == true
        return frame
    }
}

extension AppleHeader {
    /// `marketing (build)`, or the one that there is.
    static func version(_ marketing: String?, build: String?) -> String {
        guard let marketing, !marketing.isEmpty, marketing != "???" else {
            return build.map { "(\($0))" } ?? ""
        }
        guard let build, !build.isEmpty, build != "???" else { return marketing }
        return "\(marketing) (\(build))"
    }
}

extension BuildID {
    /// With or without dashes; nil for one of zeros, which stands for none.
    init?(uuid text: String) {
        self.init(hexadecimal: text.filter { $0 != "-" }.lowercased())
        if bytes.allSatisfy({ $0 == 0 }) { return nil }
    }
}
