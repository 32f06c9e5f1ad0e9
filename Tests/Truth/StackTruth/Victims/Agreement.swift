// Compares the sampler with libunwind, in one process, at thousands of random instants of a running victim:
//
//     stack-victims agree SCENARIO COUNT
//
// The victim is interrupted, libunwind unwinds it in the handler, which then blocks; the sampler captures it from
// outside. The frames outside of the signal frame must be equal.

import CStackVictims
import Foundation
import StallCapture
import StallModel

struct Agreement {
    private(set) var equal = 0
    /// libunwind omits the caller of the interrupted function if that function has no tables and is at its very
    /// beginning or end, where its frame pointer is not valid. The instructions there show that ours is right.
    private(set) var skippedByLibunwind = 0
    /// libunwind's stack is the beginning of ours.
    private(set) var cutByLibunwind = 0
    /// Ours is the beginning of libunwind's.
    private(set) var cutByUs = 0
    private(set) var differ = 0
    private(set) var failed = 0

    mutating func compare(_ thread: RegisteredThread, _ sampler: inout StackSampler) {
        var addresses = [UInt64](repeating: 0, count: 8192)
        let count = agreement_park(thread.id.rawValue, &addresses, 8192)
        defer { agreement_release() }
        let theirs = Array(addresses.prefix(Int(count)))
        guard let stack = try? sampler.captureStack(of: thread, timeout: .seconds(10)),
            let start = stack.addresses.dropFirst().firstIndex(where: { $0.kind == .interrupted })
        else {
            failed += 1
            return
        }
        let ours = stack.addresses[start...].filter { $0.kind != .asyncResume }.map(\.rawValue)
        if ours == theirs && !stack.isTruncated {
            equal += 1
        } else if !stack.isTruncated, ours.count > 1, [ours[0]] + ours[2...] == theirs {
            skippedByLibunwind += 1
        } else if ours.starts(with: theirs) && !stack.isTruncated {
            cutByLibunwind += 1
        } else if theirs.starts(with: ours) {
            cutByUs += 1
            report(ours, theirs)
        } else {
            differ += 1
            report(ours, theirs)
        }
    }

    private func report(_ ours: [UInt64], _ theirs: [UInt64]) {
        guard cutByUs + differ <= 10 else { return }
        func text(_ addresses: [UInt64]) -> String {
            addresses.prefix(12).map { String($0, radix: 16) }.joined(separator: " ")
                + " (\(addresses.count))"
        }
        print("ours      \(text(ours))\nlibunwind \(text(theirs))")
    }

    var summary: String {
        let total = equal + skippedByLibunwind + cutByLibunwind + cutByUs + differ + failed
        return
            "agreement equal=\(equal) of=\(total) skipped_by_libunwind=\(skippedByLibunwind) cut_by_libunwind=\(cutByLibunwind) cut_by_us=\(cutByUs) "
            + "differ=\(differ) failed=\(failed)"
    }
}
