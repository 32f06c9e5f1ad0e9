import Foundation
import StallModel
import StallArchive
import StallQuery
import StallStore
import Testing
import StoreTestSupport
import TestSupport

/// Goal: every moment of a stall belongs to exactly one sample, and storing does not change weights.
/// Method: hand-made samples, and random ones through a store; the file's size shows whether weights were written.
@Suite struct SampleWeightTests {
    let directory = try! TemporaryDirectory()

    @Test func `weights meet half-way between samples and add up to the duration`() {
        #expect(sampleWeights([125, 250, 500], of: 600) == [187, 188, 225])
        #expect(sampleWeights([], of: 600) == [])
    }

    @Test func `a sample that says nothing stands for nothing`() {
        #expect(sampleWeights([125, nil, 250], of: 255) == [187, 0, 68])
        #expect(sampleWeights([nil], of: 255) == [0])
    }

    @Test func `impossible offsets make no impossible weights`() {
        #expect(sampleWeights([.max, .max, -5], of: .max) == [.max, 0, 0])
        #expect(sampleWeights([300], of: -1) == [0])
    }

    @Test func `weights that follow take no space, and others are kept as they are`() throws {
        let implied = try sizeAndWeights("implied") { offsets, duration in
            sampleWeights(offsets, of: duration.nanoseconds).map { .nanoseconds($0) }
        }
        let other = try sizeAndWeights("other") { offsets, duration in
            offsets.map { _ in duration / 3 }
        }
        #expect(implied.stored == implied.given)
        #expect(other.stored == other.given)
        // A second byte of flags, and five of nanoseconds.
        #expect(implied.size + 3 * 6 == other.size)
    }

    /// Stores a report of three samples with these weights, and reads them back.
    private func sizeAndWeights(
        _ name: String, _ weights: ([Int64?], Duration) -> [Duration]
    ) throws -> (size: Int, given: [Duration], stored: [Duration]) {
        var generator = ReportGenerator(seed: 3)
        var report = generator.report(state: .ended)
        report.duration = .milliseconds(900)
        report.samples = [100, 250, 500].map { milliseconds in
            var sample = generator.sample()
            while sample.locations.isEmpty || sample.isLate { sample = generator.sample() }
            sample.offset = .milliseconds(milliseconds)
            sample.captureCost = .nanoseconds(1)
            return sample
        }
        let given = weights(report.samples.map(\.offset.nanoseconds), report.duration)
        for index in given.indices { report.samples[index].weight = given[index] }
        let path = directory(name)
        let store = try AgentStore(path: path, run: generator.run)
        try store.record(report, images: generator.images)
        try store.close()
        let size = try RawDatabase(path).query("select length(samples) from report")[0][0]
        let stored = try ReportStore.open(path: path).reports(ReportFilter())[0].samples
        return (try #require(size.flatMap { Int($0) }), given, stored.map(\.weight))
    }

    @Test func `a stall that continues changes the weight of its last sample`() throws {
        var generator = ReportGenerator(seed: 4)
        var report = generator.report(state: .open)
        report.duration = .milliseconds(300)
        var sample = generator.sample()
        while sample.locations.isEmpty || sample.isLate { sample = generator.sample() }
        (sample.offset, sample.weight) = (.milliseconds(200), report.duration)
        report.samples = [sample]
        let store = try AgentStore(path: directory("agent"), run: generator.run)
        try store.record(report, images: generator.images)
        try store.close()
        // As at the end of a process that stalled on after it was last written.
        try RawDatabase(directory("agent")).query(
            "update report set duration_ns = 5000000000, checksum = null")
        let stored = try ReportStore.open(path: directory("agent")).reports(ReportFilter())[0]
        #expect(stored.samples.map(\.weight) == [.seconds(5)])
    }
}
