import StallModel
import StallQuery
import Testing

@testable import StallAnalysis

/// Goal: stalls that come five at a time count as one, also where the other side has too few to show it.
/// Method: ten hosts a side by hand; the second side was watched four times as long.
@Suite struct HostScatterTests {
    private func runs(_ letter: String, hours: Double) -> [ComparedRun] {
        (0..<10).map { number in
            var hash = ContentHash()
            hash.combine("\(letter) \(number)")
            return ComparedRun(
                run: UniqueID((UInt64(bitPattern: hash.value), UInt64(number))),
                host: "\(letter) \(number)", watched: .seconds(hours * 3600))
        }
    }

    /// - Parameter letters: Of the hosts of the two sides.
    private func scatter(
        _ letters: (String, String), first: [Double], second: [Double]
    ) throws -> HostScatter {
        let placements = try #require(
            UnitPlacements.make(
                runs(letters.0, hours: 10), runs(letters.1, hours: 40), areWatched: true
            ).placements)
        // By unit: stalls of a second.
        var rest = (first: first[...], second: second[...])
        let counts = placements.units.map {
            $0.isSecond ? rest.second.removeFirst() : rest.first.removeFirst()
        }
        let hours = placements.units.map { $0.isSecond ? 40.0 : 10.0 }
        return HostScatter(
            of: zip(counts, hours).map { $0 / $1 },
            squares: zip(counts, hours).map { $0 / ($1 * $1) },
            placements)
    }

    private let one: [Double] = [1, 0, 0, 0, 0, 0, 0, 0, 0, 0]
    private let bursts: [Double] = [5, 5, 5, 5, 0, 0, 0, 0, 0, 0]

    @Test func `a side with one stall does not hide the bursts of the other`() throws {
        let scatter = try scatter(("A", "B"), first: one, second: bursts)
        // As if each side had lost what it was to: the one stall has most of the weight.
        #expect(scatter.dispersion((1, 1)) < 1.2)
        // Nothing changed: 4.2 stalls were to be expected where one is.
        let shares = (1 / 4.2, 20 / 16.8)
        #expect(scatter.dispersion(shares) > 2)
    }

    @Test func `independent stalls are one each`() throws {
        let even: [Double] = [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]
        let scatter = try scatter(("A", "B"), first: one, second: even)
        #expect(scatter.dispersion((0.5, 1.1)) == 1)
    }

    @Test func `hosts of both sides are compared with themselves`() throws {
        let loads: [Double] = [9, 4, 1, 1, 0, 0, 0, 0, 0, 0]
        let scatter = try scatter(("A", "A"), first: loads, second: loads.map { $0 * 4 })
        #expect(scatter.dispersion((1, 1)) == 1)
        #expect(scatter.dispersion((0.5, 1.2)) == 1)
    }
}
