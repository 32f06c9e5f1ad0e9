import StallClickHouse
import StallModel
import Testing

/// Goal: the text of a cluster's rules is on every shard, once. Method: a played cluster that notes what it is told.
@Suite struct RulesTextsTests {
    let played = PlayedCluster()

    private var inserts: [(host: String, sql: String)] {
        played.statements.filter { $0.sql.hasPrefix("insert into rules_text") }
    }

    @Test func `every shard gets the text, as a literal`() throws {
        let texts = RulesTexts(try played.cluster())
        try texts.keep("skip module \"It's\"\n", of: -7, at: UnixTime(microseconds: 5))
        #expect(inserts.map(\.host) == ["one", "two"])
        #expect(inserts[0].sql.contains(#"((-7), 'skip module "It\'s"\n', 5)"#), "\(inserts)")
    }

    @Test func `a text that is there is not written again`() throws {
        played.answers["from rules_text final where rules_hash = 7"] = Array("skip a\\n\n".utf8)
        let texts = RulesTexts(try played.cluster())
        #expect(try texts.text(of: 7) == "skip a\n")
        try texts.keep("skip a\n", of: 7)
        #expect(inserts.isEmpty)
        try texts.keep("skip b\n", of: 7)
        #expect(inserts.count == 2)
    }
}
