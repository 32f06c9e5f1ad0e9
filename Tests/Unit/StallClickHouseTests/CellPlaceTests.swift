@testable import StallClickHouse
import Testing

/// Goal: cells lie where the store in memory reads them once: RollUpQuery reads 32 days where a multiple of 32 begins, and
/// single days elsewhere.
@Suite struct CellPlaceTests {
    @Test func `without a time all is in cells of 32 days`() {
        let place = CellPlace(.min..<(.max), asksForDays: false, isAlways: true, listsAll: false)
        #expect((place.isDaily, place.dayCount, place.needsDays) == (false, 32, false))
    }

    @Test func `listed groups have their days beside`() {
        let place = CellPlace(.min..<(.max), asksForDays: true, isAlways: true, listsAll: false)
        #expect((place.isDaily, place.dayCount, place.needsDays) == (false, 32, true))
    }

    @Test func `days of all groups are read from single days`() {
        let place = CellPlace(.min..<(.max), asksForDays: true, isAlways: true, listsAll: true)
        #expect((place.isDaily, place.dayCount, place.needsDays) == (true, 1, false))
    }

    @Test(arguments: [
        (Int64(1)..<Int64(31), true, Int64(1), Int64(0)), (1..<64, false, 32, 32),
        (.min..<33, false, 32, 0),
        (33..<(.max), false, 32, 64), (-40..<1, false, 32, -32),
    ])
    func `between two times cells lie within`(
        days: Range<Int64>, isDaily: Bool, dayCount: Int64, day: Int64
    ) {
        let place = CellPlace(days, asksForDays: false, isAlways: false, listsAll: false)
        #expect((place.isDaily, place.dayCount) == (isDaily, dayCount))
        if !isDaily { #expect(place.day == day) }
    }

    /// A day that lay both in a cell and beside it counted twice in `top --until` of a time within a day.
    @Test(
        arguments: [
            (Int64(1)..<Int64(100), [1..<32, 32..<96, 96..<100]), (32..<64, [32..<64]),
            (1..<31, [1..<31]),
            (.min..<40, [.min..<32, 32..<40]), (40..<(.max), [40..<64, 64..<(.max)]),
        ] as [(Range<Int64>, [Range<Int64>])])
    func `a range is divided where the store in memory divides it`(
        range: Range<Int64>, parts: [Range<Int64>]
    ) {
        #expect(CellPlace.parts(of: range) == parts)
        for part in parts {
            let place = CellPlace(part, asksForDays: true, isAlways: false, listsAll: false)
            #expect(place.isDaily != place.needsDays)
        }
    }
}
