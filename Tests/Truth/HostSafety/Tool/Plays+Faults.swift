// Faults from which the app recovers in each way that a handler has.

import CHostSafety
import Foundation
import StallAgent

extension Play {
    static let faults: [Play] = []
}
