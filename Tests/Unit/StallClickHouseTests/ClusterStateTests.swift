import StallClickHouse
import StallHTTP
import StallModel
import StallQuery
import TestSupport
import Testing

/// Goal: an answer that lacks a shard says so, and one that lacks none is refused when one is missing later.
/// Method: a scripted server.
@Suite struct ClusterStateTests {
    static let whole = "version\t\(ClickHouseMigration.newest)\t0\ngrouping\t42\t0\nshards\t0\t0\n"
    /// Of the days, which are asked for at once with it.
    static let days = ScriptedServer.answer("")
    static let down = ScriptedServer.error(279, "All connection tries failed")

    @Test func `a cluster whose shards answer is whole`() throws {
        let script = ScriptedServer([ScriptedServer.answer(Self.whole), Self.days])
        let store = try ClusterStore(script.server())
        #expect(store.missingShards.isEmpty)
        #expect(try store.rulesHash() == 42)
        #expect(try store.prunedBefore() == nil)
        #expect(!script.requests[0].url.contains("skip_unavailable_shards"))
    }

    @Test func `a shard that is down is named, and done without`() throws {
        let script = ScriptedServer([
            Self.down, Self.days,
            Self.down, ScriptedServer.answer("1\t127.0.0.1:9000\n2\t127.0.0.2:9000\n"),
            ScriptedServer.answer("1\n"),
            Self.down, ScriptedServer.answer(Self.whole),
        ])
        let store = try ClusterStore(script.server())
        #expect(store.missingShards == ["127.0.0.2:9000"])
        #expect(script.requests.last?.url.contains("skip_unavailable_shards=1") == true)
    }

    @Test func `a shard that is back is asked`() throws {
        let script = ScriptedServer([
            Self.down, Self.days,
            Self.down, ScriptedServer.answer("1\t127.0.0.1:9000\n"), ScriptedServer.answer("1\n"),
            ScriptedServer.answer(Self.whole),
        ])
        #expect(try ClusterStore(script.server()).missingShards.isEmpty)
        #expect(script.requests.last?.url.contains("skip_unavailable_shards") == false)
    }

    @Test func `what is asked first is sent with what opening asks, and once`() throws {
        let empty = Array(repeating: ScriptedServer.answer(""), count: 20)
        let script = ScriptedServer([ScriptedServer.answer(Self.whole)] + empty)
        let question = AggregateQuestion(
            withDays: true, largest: LargestGroups(count: 20, by: .total))
        let store = try ClusterStore(script.server(), expecting: question)
        let atOnce = script.requests.count
        #expect(atOnce == 9)
        #expect(try store.aggregates(question, grouper: PlainGrouper()).groups.isEmpty)
        #expect(script.requests.count > atOnce)
        #expect(Set(script.requests.map(\.body)).count == script.requests.count)
    }

    @Test(arguments: ["two", "'two'", "`two`"])
    func `tables of the address's cluster are read`(name: String) throws {
        let engine = "engine Distributed(\(name), stalls, report_local)\t0\t0\n"
        let script = ScriptedServer([ScriptedServer.answer(Self.whole + engine), Self.days])
        #expect(try ClusterStore(script.server()).missingShards.isEmpty)
    }

    @Test func `who may only read is told that a shard is down`() throws {
        let script = ScriptedServer([
            Self.down, Self.days, Self.down, ScriptedServer.answer("1\t127.0.0.1:9000\n"),
            ScriptedServer.error(164, "Table functions are forbidden in readonly mode"),
            ScriptedServer.error(164, "Table functions are forbidden in readonly mode"),
        ])
        let error = try #require(throws: ClickHouseError.self) {
            try ClusterStore(script.server())
        }
        #expect(error.description.hasSuffix("error 279: All connection tries failed"))
    }

    @Test(arguments: [
        (ScriptedServer.error(60, "no table"), "run stallctl migrate"),
        (ScriptedServer.error(81, "no database"), "run stallctl migrate"),
        (ScriptedServer.answer("version\t0\t0\nshards\t0\t0\n"), "run stallctl migrate"),
        (ScriptedServer.answer("version\t999\t0\nshards\t0\t0\n"), "update stallwatch"),
        (ScriptedServer.answer("hello\n"), "not an answer of a store"),
        (
            ScriptedServer.answer(
                whole + "engine Distributed(three, stalls, report_local)\t0\t0\n"),
            "expected cluster=three"
        ),
        (
            ScriptedServer.answer(whole + "engine Merge(stalls, '^report_local$')\t0\t0\n"),
            "expected no cluster="
        ),
    ])
    func `a database of another kind is refused`(reply: HTTPReply, words: String) throws {
        let error = try #require(throws: ClickHouseError.self) {
            try ClusterStore(ScriptedServer([reply, Self.days, reply]).server())
        }
        #expect(error.description.contains(words))
    }
}
