// The questions that read the stacks of every report, one in a process: its CPU time is then the command's without the
// start, and its memory the command's. The hash shows whether two programs answer the same.

import Foundation
import StallAnalysis
import StallArchive
import StallModel
import StallQuery

enum StackQuestions {
    static func ask(_ path: String, _ question: String) throws {
        let store = try ReportStore.open(path: path)
        var tree: CallTree?
        var ranking: Ranking?
        let effort = try Effort.of {
            switch question {
            case "tree":
                tree = try CallTree(
                    of: store, ReportFilter(), direction: .topDown, rules: rules.rules)
            case "inclusive":
                ranking = try RankingQuestion(store: store, by: .inclusive)
                    .ranking(by: .total, limit: 20)
            default:
                throw RawDatabase.Failure(description: "no such question: \(question)")
            }
        }
        var usage = rusage()
        getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        var hash = ContentHash()
        for node in tree.map({ Array($0.nodes) }) ?? [] {
            hash.combine("\(node.function) \(node.depth) \(node.time) \(node.count)")
        }
        for group in ranking?.groups ?? [] { hash.combine("\(group.group) \(group.totals)") }
        print(
            "\(question): \(effort.cpu) of CPU, \(usage.ru_maxrss / 1024) MB, answer",
            String(UInt64(bitPattern: hash.value), radix: 16))
    }
}
