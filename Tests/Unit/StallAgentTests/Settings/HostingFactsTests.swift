import StallModel
import Testing

@testable import StallAgent

/// Goal: pod, namespace and container are what the environment says, and nothing is said where it says nothing.
/// Method: environments as Kubernetes, OpenTelemetry and plain hosts have them.
@Suite struct HostingFactsTests {
    func facts(_ environment: [String: String]) -> [String] {
        HostingFacts(environment, containerID: nil).evidence.map { "\($0.name) \($0.value)" }
    }

    @Test func `the names of the downward API are read`() {
        let said = facts([
            "POD_NAME": "shop-7d4b9", "POD_NAMESPACE": "prod", "CONTAINER_NAME": "web",
            "HOSTNAME": "node-1", "SECRET": "x",
        ])
        #expect(said == ["pod shop-7d4b9", "namespace prod", "container web"])
    }

    @Test func `OpenTelemetry's resource attributes count where those are missing`() {
        let attributes = "service.name=shop, k8s.pod.name=shop-1 ,k8s.namespace.name=prod,broken,=x"
        #expect(
            facts(["OTEL_RESOURCE_ATTRIBUTES": attributes]) == ["pod shop-1", "namespace prod"])
        #expect(
            facts(["OTEL_RESOURCE_ATTRIBUTES": attributes, "POD_NAME": "shop-2"])
                == ["pod shop-2", "namespace prod"])
    }

    @Test func `a host name is a pod's in Kubernetes only`() {
        #expect(facts(["HOSTNAME": "laptop"]) == [])
        #expect(
            facts(["HOSTNAME": "shop-3", "KUBERNETES_SERVICE_HOST": "10.0.0.1"])
                == ["pod shop-3"])
        #expect(facts(["POD_NAME": ""]) == [])
    }

    /// Goal: a record of a stall carries what a cluster's own tools call its container.
    @Test func `the runtime's number counts where the environment names none`() {
        let id = String(repeating: "0f", count: 32)
        #expect(
            HostingFacts(["CONTAINER_NAME": "web"], containerID: id).evidence.map(\.name)
                == ["container", "container id"])
        let named = HostingFacts(["OTEL_RESOURCE_ATTRIBUTES": "container.id=abc"], containerID: id)
        #expect(named.containerID == "abc" && named.container == nil)
    }
}
