// An app that closes descriptors which it did not open, and one that needs nearly all that it may have.

import CHostSafety
import Foundation
import StallAgent

extension Play {
    static let descriptors: [Play] = []
}
