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
}
