import CLinux
import LoopConformance
import TestSupport
import Testing

@testable import StallRunLoop

/// Goal: whatever is always ready, each kind of it gets its share of the iterations.
@Suite struct FairnessTests {
    /// Method: the conformance tool has a main thread to give, and Dispatch's own main queue.
    @Test func `every kind that is always ready gets a share`() throws {
        let text = try BuiltProgram("conformance", ["--fairness"]).finish().output
        #expect(text == "fairness plays=124 starved=0\n")
    }

    @Test func `in a batch, more sources of a descriptor than events of a wait have their share`()
        throws
    {
        try onFreshThreadThrowing {
            let loop = EventRunLoop.current
            loop.descriptorDelivery = .batch
            let ready = stall_eventfd_create()
            defer { stall_descriptor_close(ready) }
            stall_eventfd_write(ready)
            nonisolated(unsafe) var counts = [Int](repeating: 0, count: 600)
            for index in counts.indices {
                let source = DescriptorSource(descriptor: ready) { _, _ in counts[index] += 1 }
                try loop.add(source, toMode: .default)
            }
            for _ in 0..<3 { loop.run(for: .zero) }
            #expect(counts.allSatisfy { $0 == 3 })
        }
    }
}
