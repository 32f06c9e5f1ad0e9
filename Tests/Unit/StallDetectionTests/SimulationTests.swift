import StallSimulation
import Testing

/// Goal: whatever happens to the threads of a process, its stalls are reported with their lengths, and nothing else is.
/// Method: the watchdog, its loops and the kernel run on one thread, whose time is made up from a seed.
@Suite struct SimulationTests {
    @Test(arguments: Weather.all)
    func `every stall is reported, and nothing else`(in weather: Weather) {
        // Most can go wrong where the watchdog has no CPU.
        let seeds: Range<UInt64> = weather.name == "starved" ? 0..<4 : 0..<2
        for seed in seeds {
            let machine = SimulatedMachine(seed: seed, weather: weather, lasting: .seconds(300))
            let found = machine.run(thresholds: SimulatedMachine.thresholds)
            #expect(found.isRight, "seed \(seed): \(found.notes.joined(separator: "\n"))")
            #expect(found.planted > 0)
        }
    }

    /// A watchdog lost its CPU between reading its counters and the clock; a loop became suspect while its thread was read.
    @Test(arguments: [(6, 561_815_169 as UInt64), (4, 561_815_160), (4, 561_815_147)])
    func `seeds that have shown a defect show it no more`(weather: Int, seed: UInt64) {
        let machine = SimulatedMachine(
            seed: seed, weather: Weather.all[weather], lasting: .seconds(600))
        let found = machine.run(thresholds: SimulatedMachine.thresholds)
        #expect(found.isRight, "\(found.notes.joined(separator: "\n"))")
    }

    /// No poll of another loop is there to notice what was missed.
    @Test(arguments: Weather.all)
    func `every stall of a loop alone is reported`(in weather: Weather) {
        let machine = SimulatedMachine(seed: 1, weather: weather, lasting: .seconds(600))
        let found = machine.run(thresholds: [.milliseconds(100)])
        #expect(found.isRight, "\(found.notes.joined(separator: "\n"))")
        #expect(found.planted > 0)
    }
}

extension Weather: CustomTestStringConvertible {
    public var testDescription: String { name }
}
