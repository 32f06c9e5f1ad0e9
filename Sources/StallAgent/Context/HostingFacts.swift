// The pod, namespace and container of this process, as far as its environment and its runtime name them. Only these names
// are read: an environment may contain secrets.

internal import StallCause
internal import StallModel

/// Where a container's platform runs this process.
struct HostingFacts: Equatable, Sendable {
    var pod: String?
    var namespace: String?
    var container: String?
    var containerID: String?

    /// Names by convention of the downward API, of OpenTelemetry, and what Kubernetes sets itself.
    static let variables = [
        "POD_NAME", "K8S_POD_NAME", "KUBERNETES_POD_NAME", "POD_NAMESPACE", "K8S_NAMESPACE",
        "KUBERNETES_NAMESPACE", "CONTAINER_NAME", "K8S_CONTAINER_NAME", "OTEL_RESOURCE_ATTRIBUTES",
        "KUBERNETES_SERVICE_HOST", "HOSTNAME",
    ]

    /// - Parameter containerID: The ID that the runtime gave the container, for an environment without one.
    init(_ environment: [String: String], containerID: @autoclosure () -> String?) {
        func first(_ names: String...) -> String? {
            names.lazy.compactMap { environment[$0] }.first { !$0.isEmpty }?.clipped
        }
        let resource = Self.attributes(environment["OTEL_RESOURCE_ATTRIBUTES"] ?? "")
        pod =
            first("POD_NAME", "K8S_POD_NAME", "KUBERNETES_POD_NAME") ?? resource["k8s.pod.name"]
        // In a pod the host name is the pod's, unless its specification says otherwise.
        if pod == nil, environment["KUBERNETES_SERVICE_HOST"] != nil { pod = first("HOSTNAME") }
        namespace =
            first("POD_NAMESPACE", "K8S_NAMESPACE", "KUBERNETES_NAMESPACE")
            ?? resource["k8s.namespace.name"]
        container =
            first("CONTAINER_NAME", "K8S_CONTAINER_NAME") ?? resource["k8s.container.name"]
            ?? resource["container.name"]
        self.containerID = resource["container.id"] ?? containerID()
    }

    /// `key=value,key=value`; values may be percent-encoded, which names of pods never need.
    private static func attributes(_ text: String) -> [String: String] {
        var found: [String: String] = [:]
        for pair in text.split(separator: ",") {
            let parts = pair.split(separator: "=", maxSplits: 1)
            guard parts.count == 2 else { continue }
            found[parts[0].trimmed] = parts[1].trimmed.clipped
        }
        return found
    }

    /// As facts of each report.
    var evidence: [CauseEvidence] {
        let named: [(name: EvidenceName, value: String?)] = [
            (.pod, pod), (.namespace, namespace), (.container, container),
            (.containerID, containerID),
        ]
        return named.compactMap { fact in
            fact.value.map { CauseEvidence(fact.name.rawValue, $0) }
        }
    }
}

extension Substring {
    fileprivate var trimmed: String {
        var text = self
        while text.first == " " { text.removeFirst() }
        while text.last == " " { text.removeLast() }
        return String(text)
    }
}

extension String {
    /// Longer names do not exist in Kubernetes.
    fileprivate var clipped: String { String(prefix(253)) }
}
