// Lines of a log as collectors of containers' logs store them.
//
//     2026-11-20T09:14:31.204567890Z stderr F MESSAGE
//     {"log":"MESSAGE\\n","stream":"stderr","time":"2026-11-20T09:14:31.204567890Z"}
//
// The second form is made the first one, so that only that is known elsewhere. A message that a collector has divided
// (`P`) stays divided.
//
// **Source:** Kubernetes, pkg/kubelet/kuberuntime/logs; Docker, daemon/logger/jsonfilelog.

extension [UInt8] {
    /// The line without colors, and without Docker's JSON around it.
    var asLogLine: [UInt8] {
        if first == UInt8(ascii: "{"), let line = Self.line(ofDocker: self) { return line }
        return withoutColors
    }

    private static func line(ofDocker bytes: [UInt8]) -> [UInt8]? {
        guard bytes.count <= 1 << 17, bytes.prefix(8).starts(with: #"{"log":"#.utf8),
            let document = try? JSONDocument(bytes)
        else { return nil }
        let node = JSONNode(document, 0)
        guard let message = node["log"]?.text else { return nil }
        let time = node["time"]?.text ?? ""
        let line = message.prefix { !$0.isNewline }
        let prefix = time.isEmpty ? "" : "\(time) \(node["stream"]?.text ?? "stdout") F "
        return Array((prefix + line).utf8).withoutColors
    }
}

extension ArraySlice<UInt8> {
    /// The message behind Kubernetes' prefix; nil without one.
    var afterCollector: Self? {
        guard first?.isDigit == true else { return nil }
        var rest = prefix(64)
        let (time, stream, part) = (rest.takeWord(), rest.takeWord(), rest.takeWord())
        guard time.count >= 20,
            stream.elementsEqual("stdout".utf8) || stream.elementsEqual("stderr".utf8),
            part.elementsEqual("F".utf8) || part.elementsEqual("P".utf8)
        else { return nil }
        return self[part.endIndex...].dropFirst()
    }
}
