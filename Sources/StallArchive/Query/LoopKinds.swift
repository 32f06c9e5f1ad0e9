// The loops of a store by what sums show of them: a fleet has tens of thousands of process runs, of few versions on few
// hosts.

internal import StallModel
internal import StallQuery
internal import StallStore

/// Loops of one app, version, host and name are of one kind.
struct LoopKinds {
    /// The numbers of one loop.
    struct Loop {
        /// Index into `kinds`.
        var kind: Int32
        /// The number that the caller gave the program.
        var executable: Int32
    }

    private struct Place: Hashable {
        var app, version, host: String
    }
    private struct Kind: Hashable {
        var run: Int
        var name: String
    }

    /// One run of each app, version and host.
    private(set) var runs: [ProcessRun] = []
    private(set) var kinds: [(run: Int, name: String)] = []
    private var loops: [Loop] = []
    /// Of `loops`.
    private var numbers = KeyNumbers()

    init(_ connection: Connection, executable: (BuildID?) -> Int32) throws {
        var runNumbers: [Place: Int] = [:]
        var kindNumbers: [Kind: Int32] = [:]
        // By the bytes of all that the numbers follow from: most loops have those of another.
        var known: [[UInt8]: Loop] = [:]
        var bytes: [UInt8] = []
        let nameColumn: CInt = 5
        var reader = ProcessRunReader()
        let rows = try connection.prepare(
            """
            select loop.id, process_run.app, process_run.version, process_run.build_id, process_run.host, loop.name,
                \(ProcessRun.columns)
            from loop join process_run on process_run.id = loop.run
            """)
        while try rows.step() {
            guard try numbers.add(rows.integer()) == loops.count else {
                throw rows.damage("two loops of one number")
            }
            bytes.removeAll(keepingCapacity: true)
            for column in 1...nameColumn {
                let value = rows.blob(at: column)
                bytes.append(leb128: rows.isNull(at: column) ? 0 : UInt64(value.count) + 1)
                bytes += value
            }
            if let loop = known[bytes] {
                loops.append(loop)
                rows.skipRest()
                continue
            }
            rows.go(to: nameColumn)
            let name = rows.text()
            let run = try reader.run(rows)
            let place = Place(app: run.app, version: run.version, host: run.host)
            let kind = Kind(run: runNumbers[place] ?? runs.count, name: name)
            if kind.run == runs.count {
                runNumbers[place] = kind.run
                runs.append(run)
            }
            let number = kindNumbers[kind] ?? Int32(kinds.count)
            if number == kinds.count {
                kindNumbers[kind] = number
                kinds.append((kind.run, name))
            }
            let loop = Loop(kind: number, executable: executable(run.buildID))
            if known.count < Self.limit { known[bytes] = loop }
            loops.append(loop)
        }
    }

    /// The size at which no more are noted, to bound memory.
    private static let limit = 10_000

    /// Nil for a loop that the store does not have.
    func loop(_ id: Int64) -> Loop? { numbers.number(of: id).map { loops[Int($0)] } }
}
