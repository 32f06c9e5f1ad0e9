// What the agent said of the planted stalls, counted.

import StallModel

struct Score {
    private var matrix: [CauseClass: [CauseClass?: Int]] = [:]
    private var byPlant: [String: (right: Int, all: Int)] = [:]
    private var holders = (named: 0, all: 0)
    private var deadlocks = (called: 0, all: 0)
    private var falseDeadlocks = 0
    private var mistakes: [String] = []

    init(_ planted: [String: Planted], _ reports: [StallReport]) {
        let found = Dictionary(grouping: reports) { $0.activity ?? "" }
            .compactMapValues { $0.max { $0.duration < $1.duration } }
        for (label, planted) in planted.sorted(by: { $0.key < $1.key }) {
            add(planted, found[label], label)
        }
    }

    private mutating func add(_ planted: Planted, _ report: StallReport?, _ label: String) {
        let (plant, cause) = (planted.plant, report?.cause)
        matrix[plant.cause, default: [:]][cause?.cause, default: 0] += 1
        byPlant[plant.name, default: (0, 0)].all += 1
        if cause?.cause == plant.cause {
            byPlant[plant.name]!.right += 1
        } else {
            let shares = cause?.shares.map { "\($0.cause.word) \($0.fraction)" } ?? []
            let facts = cause?.evidence.map { "\($0.name) \($0.value)" } ?? []
            mistakes.append(
                "\(label): \(cause?.cause.word ?? "no report") \(report.map { "\($0.verdict)" } ?? "")"
                    + " \(shares); \(facts.joined(separator: "; "))")
        }
        if plant.namesHolder {
            holders.all += 1
            let holder = cause?.holder?.thread.rawValue
            if holder != nil, planted.outcome.holder == nil || planted.outcome.holder == holder {
                holders.named += 1
            } else {
                mistakes.append("\(label): holder \(holder.map(String.init) ?? "unknown")")
            }
        }
        let isCalled = cause?.holder?.isDeadlock == true
        if plant.isDeadlock {
            deadlocks.all += 1
            if isCalled { deadlocks.called += 1 } else { mistakes.append("\(label): no deadlock") }
        } else if isCalled {
            falseDeadlocks += 1
            mistakes.append("\(label): a deadlock that is none")
        }
    }

    private var right: Int { matrix.reduce(0) { $0 + ($1.value[$1.key] ?? 0) } }
    private var all: Int { matrix.values.reduce(0) { $0 + $1.values.reduce(0, +) } }

    /// The bars: 95 of 100 right, 85 in every class, every holder, every deadlock and no other.
    var isGoodEnough: Bool {
        right * 100 >= all * 95 && holders.named == holders.all
            && deadlocks.called == deadlocks.all && falseDeadlocks == 0
            && matrix.allSatisfy { cause, row in
                (row[cause] ?? 0) * 100 >= row.values.reduce(0, +) * 85
            }
    }

    func print() {
        for mistake in mistakes { Swift.print("  \(mistake)") }
        Swift.print("\nplant: right of all")
        for (name, count) in byPlant.sorted(by: { $0.key < $1.key }) {
            Swift.print("  \(name): \(count.right) of \(count.all)")
        }
        let columns: [CauseClass?] = CauseClass.allCases + [nil]
        Swift.print(
            "\n| planted | " + columns.map { $0?.word ?? "none" }.joined(separator: " | ") + " |")
        Swift.print("|---|" + columns.map { _ in "---|" }.joined())
        for cause in CauseClass.allCases {
            guard let row = matrix[cause] else { continue }
            let cells = columns.map { row[$0].map(String.init) ?? "" }
            Swift.print("| \(cause.word) | " + cells.joined(separator: " | ") + " |")
        }
        if falseDeadlocks > 0 {
            Swift.print("deadlocks called where there is none: \(falseDeadlocks)")
        }
        Swift.print(
            "truth cause right=\(right) of=\(all) holder_named=\(holders.named) of=\(holders.all) "
                + "deadlocks=\(deadlocks.called) of=\(deadlocks.all)")
    }
}
