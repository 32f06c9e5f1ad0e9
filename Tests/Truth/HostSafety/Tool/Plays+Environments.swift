// Whose environment counts, and which system calls the agent makes.

import CHostSafety
import Foundation
import StallAgent

extension Play {
    static let environments: [Play] = []
}
