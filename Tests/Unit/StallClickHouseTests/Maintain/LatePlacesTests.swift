import StallModel
import TestSupport
import Testing

@testable import StallClickHouse

/// Goal: names that come late are looked for in the reports that wait for one, and in nothing else.
/// Method: a played cluster notes what it is asked.
@Suite struct LatePlacesTests {
    let played = PlayedCluster()

    private func regroup(_ places: [Int64]) throws -> [String] {
        played.answers["from grouping final"] = Array("42\t0\n".utf8)
        let days = try ClusterRegroup(played.cluster()).run(ofPlaces: places, PlainGrouper())
        #expect(days.isEmpty)
        return played.statements.map(\.sql).filter {
            $0.contains("unnamed") || $0.contains("from stack")
        }
    }

    @Test func `where no report waits for a name, no more is asked`() throws {
        #expect(try regroup(Array(1...20_000)).count == 1)
    }

    @Test func `only reports are read whose stacks show such a place`() throws {
        played.answers["arrayJoin(stack)"] = Array("7\n8\n".utf8)
        played.answers["select hash, location from stack"] = Array("7\t[1,-2]\n8\t[3]\n".utf8)
        let asked = try regroup([-2, 9])
        #expect(asked.count == 3)
        #expect(asked[2].contains("is_unnamed = 1 and arrayExists(one -> one in (7), stack)"))
    }

    @Test func `no place, no question`() throws {
        #expect(try regroup([]).isEmpty)
    }
}
