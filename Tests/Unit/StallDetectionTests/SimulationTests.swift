import StallSimulation
import Testing

/// Goal: whatever happens to the threads of a process, its stalls are reported with their lengths, and nothing else is.
/// Method: the watchdog, four loops and the kernel run on one thread, whose time is made up from a seed.
@Suite struct SimulationTests {
    @Test(arguments: Weather.all)
    func `every stall is reported, and nothing else`(in weather: Weather) {
        var all = Findings()
        for seed in 0..<2 as Range<UInt64> {
            let machine = SimulatedMachine(seed: seed, weather: weather, lasting: .seconds(300))
            all += machine.run(thresholds: SimulatedMachine.thresholds)
        }
        #expect(all.isRight, "\(all.notes.joined(separator: "\n"))")
        #expect(all.planted > 0)
    }
}

extension Weather: CustomTestStringConvertible {
    public var testDescription: String { name }
}
