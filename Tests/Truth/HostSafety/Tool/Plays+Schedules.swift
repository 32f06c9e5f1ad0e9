// The scheduling class, affinity, nice value, mask and limits of whoever starts the agent.

import CHostSafety
import Foundation
import StallAgent

extension Play {
    static let schedules: [Play] = []
}
