// What the agent's signals meet: small stacks, short waits, other handlers, other copies of the agent.

import CHostSafety
import Foundation
import StallAgent

extension Play {
    static let signals: [Play] = []
}
