// The rule of before, which SABOTAGE=1 puts in place: each stall is independent, and each group is judged alone.

import Foundation
import StallModel
import StallQuery

struct OldRule {
    var value: Double
    var low: Double
    var high: Double

    init(_ first: StallTotals, _ second: StallTotals, exposure: Double) {
        let (one, other) = (first.total / .seconds(1), second.total / .seconds(1))
        guard first.count > 0 || second.count > 0 else {
            (value, low, high) = (.nan, 0, .infinity)
            return
        }
        guard first.count > 0, second.count > 0 else {
            let share = pow(0.025, 1 / Double(max(first.count + second.count, 1)))
            let odds = share / (1 - share)
            value = first.count == 0 ? .infinity : 0
            low = first.count == 0 ? odds / exposure : 0
            high = first.count == 0 ? .infinity : 1 / odds / exposure
            return
        }
        value = other / one / exposure
        let variance = first.squares / (one * one) + second.squares / (other * other)
        let factor = exp(1.959_963_985 * variance.squareRoot())
        (low, high) = (value / factor, value * factor)
    }

    var isSignificant: Bool { low > 1 || high < 1 }
    func exceeds(_ limit: Double) -> Bool { value > limit && low > 1 }
}
