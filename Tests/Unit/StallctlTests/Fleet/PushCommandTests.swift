#if Fleet
import Foundation
import Glibc
import StallAnalysis
import StallArchive
import StallIngest
import StallModel
import StallQuery
import StallStore
import TestSupport
import Testing

@testable import stallctl

/// Goal: what is pushed is, at the collector, what `ingest` of the file would have made of it, whatever goes wrong on the
/// way. Method: the built program against a collector on the loopback that misbehaves.
@Suite struct PushCommandTests {
    private func push(_ arguments: [String], in directory: URL) throws -> ProgramResult {
        try Oracle.run(
            BuiltProgram.directory.appending(path: "stallctl").path, ["push"] + arguments,
            environment: ["TZ": "UTC", "HOME": directory.path], directory: directory)
    }

    private func expectSame(_ found: String, _ expected: String, _ comment: Comment? = nil) throws {
        let difference = try StoreContent(found, withNamers: false)
            .difference(from: StoreContent(expected, withNamers: false))
        #expect(difference == [], comment)
        #expect(try checkStore(path: found).isEmpty, comment)
    }

    @Test(arguments: 1...2 as ClosedRange<UInt64>)
    func `a push is an ingest from afar`(seed: UInt64) throws {
        try withTemporaryDirectory { directory in
            func path(_ name: String) -> String { directory.appending(path: name).path }
            let collector = try LoopbackCollector(central: path("hub"))
            defer { collector.stop() }
            try "secret\n".write(toFile: path("token"), atomically: true, encoding: .utf8)
            var writers = [RowWriter(seed: seed), RowWriter(seed: seed + 50, app: "other")]
            for round in 0..<3 {
                for index in writers.indices {
                    try writers[index].write(30, to: path("agent\(index).sqlite"), state: nil)
                }
                let result = try push(
                    [collector.url, "--token-file", "token", "agent0.sqlite", "agent1.sqlite"],
                    in: directory)
                #expect(result.status == 0 && result.errors == "", "\(result)")
                #expect(result.output.contains("of 2 stores"))
                // A file ingest between two pushes.
                if round == 1 { try ingest([path("agent0.sqlite")], into: path("hub")) }
                try ingest(["agent0.sqlite", "agent1.sqlite"].map(path), into: path("direct"))
                try expectSame(path("hub"), path("direct"), "round \(round)")
            }
            #expect(collector.requests.allSatisfy { $0.fields["authorization"] == "Bearer secret" })
            let before = collector.requests.count
            let nothing = try push([collector.url, "agent0.sqlite", "--json"], in: directory)
            #expect(nothing.status == 0 && nothing.output.contains(#""sent":0"#), "\(nothing)")
            #expect(collector.requests.count == before + 1)
            // And ingest of what was pushed brings nothing.
            #expect(try ingest([path("agent0.sqlite")], into: path("hub")).addedCount == 0)
        }
    }

    /// Method: five seconds are the least time that an answer has.
    @Test(arguments: [true, false])
    func `a collector that never answers is given up after --wait`(asks: Bool) throws {
        try withTemporaryDirectory { directory in
            func path(_ name: String) -> String { directory.appending(path: name).path }
            let collector = try LoopbackCollector(central: path("hub"))
            defer { collector.stop() }
            var writer = RowWriter(seed: 1)
            try writer.write(3, to: path("agent.sqlite"), state: nil)
            let position = LoopbackCollector.response(200, "{\"through\":0}")
            collector.expect(asks ? [.silence] : [.answer(position), .silence])
            let result = try push([collector.url, "--wait", "4", "agent.sqlite"], in: directory)
            #expect(result.status == 1, "\(result)")
            #expect(result.errors.contains("no answer within 5 s"), "\(result)")
            #expect(collector.requests.count == (asks ? 1 : 2))
        }
    }

    /// Goal: `--wait` is for the whole run, however many stores there are.
    @Test func `a silent collector is asked for one of several stores`() throws {
        try withTemporaryDirectory { directory in
            func path(_ name: String) -> String { directory.appending(path: name).path }
            let collector = try LoopbackCollector(central: path("hub"))
            defer { collector.stop() }
            let names = ["first", "second", "third"].map { $0 + ".sqlite" }
            for (index, name) in names.enumerated() {
                var writer = RowWriter(seed: UInt64(index + 1))
                try writer.write(3, to: path(name), state: nil)
            }
            collector.expect([.silence, .silence, .silence])
            let result = try push([collector.url, "--wait", "4", "--json"] + names, in: directory)
            #expect(result.status == 1 && collector.requests.count == 1, "\(result)")
            for name in names {
                let failure = "\(name): not sent: \(collector.url) no answer within 5 s"
                #expect(result.errors.contains(failure), "\(result)")
            }
            #expect(result.output.contains(#""failed":3"#), "\(result)")
        }
    }

    @Test func `whatever goes wrong on the way, all rows arrive once`() throws {
        try withTemporaryDirectory { directory in
            func path(_ name: String) -> String { directory.appending(path: name).path }
            let collector = try LoopbackCollector(central: path("hub"))
            defer { collector.stop() }
            var writer = RowWriter(seed: 5)
            let position = LoopbackCollector.response(200, "{\"through\":0}")
            // One mishap in each push: the first wait is at most a second.
            for mishaps in [
                [.drop], [.answer("nonsense\r\n")],
                [.answer(LoopbackCollector.response(503, "busy"))],
                [.answer(position), .dropAfterStoring], [.answer(position), .cut],
                [.answer(position), .answerAfterStoring(LoopbackCollector.response(200, ""))],
                [.answer(position), .answer(LoopbackCollector.response(200, "hello"))],
            ] as [[LoopbackCollector.Mishap]] {
                try writer.write(10, to: path("agent.sqlite"))
                collector.expect(mishaps)
                let result = try push([collector.url, "agent.sqlite"], in: directory)
                #expect(result.status == 0, "\(result)")
                #expect(result.errors.contains("trying again"))
            }
            try ingest([path("agent.sqlite")], into: path("direct"))
            try expectSame(path("hub"), path("direct"))
        }
    }

    @Test func `a refused row is counted, and the others arrive`() throws {
        try withTemporaryDirectory { directory in
            func path(_ name: String) -> String { directory.appending(path: name).path }
            let collector = try LoopbackCollector(central: path("hub"))
            defer { collector.stop() }
            var writer = RowWriter(seed: 6)
            try writer.write(20, to: path("agent.sqlite"))
            collector.expect([
                .answer(LoopbackCollector.response(200, "{\"through\":0}")),
                .answer(LoopbackCollector.response(422, "{\"line\":3,\"error\":\"smells\"}")),
            ])
            let result = try push([collector.url, "agent.sqlite", "--json"], in: directory)
            #expect(result.status == 1)
            #expect(result.output.contains(#""refused":1"#) && result.output.contains("smells"))
            #expect(result.errors.contains("refused by \(collector.url): smells"))
            let again = try push([collector.url, "agent.sqlite"], in: directory)
            #expect(again.status == 0)
        }
    }

    @Test func `an answer that will not change ends the push at once`() throws {
        try withTemporaryDirectory { directory in
            func path(_ name: String) -> String { directory.appending(path: name).path }
            let collector = try LoopbackCollector(central: path("hub"))
            defer { collector.stop() }
            var writer = RowWriter(seed: 7)
            try writer.write(20, to: path("agent.sqlite"))
            for (answer, words) in [
                (
                    LoopbackCollector.response(401, "{\"error\":\"who?\"}"),
                    "refused the token (401): who?"
                ),
                (
                    LoopbackCollector.response(302, "", "Location: http://127.0.0.1:1/\r\n"),
                    "redirects to http://127.0.0.1:1/, which is not followed"
                ),
                (LoopbackCollector.response(404, "<html>"), "answered 404: <html>"),
            ] {
                collector.expect([.answer(answer)])
                let result = try push([collector.url, "agent.sqlite"], in: directory)
                #expect(result.status == 1 && result.errors.contains(words), "\(result)")
            }
            #expect(collector.requests.count == 3)
            let unreachable = try push(
                ["http://127.0.0.1:1", "--wait", "0", "agent.sqlite"], in: directory)
            #expect(
                unreachable.status == 1 && unreachable.errors.contains("not sent"),
                "\(unreachable)")
            let wrong = try push(["hub:4319", "agent.sqlite"], in: directory)
            #expect(wrong.status == 64)
            let missing = try push([collector.url, "missing.sqlite"], in: directory)
            #expect(missing.status == 1 && missing.errors.contains("no such file"))
            let token = try push(
                [collector.url, "--token-file", "nothing", "agent.sqlite"], in: directory)
            #expect(token.status == 1 && token.errors.contains("nothing: cannot be read"))
        }
    }

    @Test func `stalls are sent to an OpenTelemetry collector once`() throws {
        try withTemporaryDirectory { directory in
            func path(_ name: String) -> String { directory.appending(path: name).path }
            let collector = try LoopbackCollector(central: path("hub"))
            defer { collector.stop() }
            var writer = RowWriter(seed: 8)
            try writer.write(40, to: path("agent.sqlite"))
            let count = try ReportStore.open(path: path("agent.sqlite")).status().reportCount
            collector.expect([
                .answer(LoopbackCollector.response(503, "", "Retry-After: 0\r\n")),
                .answer(LoopbackCollector.response(200, "{}")),
            ])
            let url = collector.url + "/v1/logs"
            let first = try push(["--otlp", url, "agent.sqlite"], in: directory)
            #expect(first.status == 0 && first.output.contains("sent \(count) rows"), "\(first)")
            let again = try push(["--otlp", url, "agent.sqlite"], in: directory)
            #expect(again.status == 0 && again.output.contains("sent 0 rows"), "\(again)")
            #expect(collector.requests.count == 2)
            #expect(collector.requests[0].line == "POST /v1/logs HTTP/1.1")
            try "{}".write(toFile: path("agent.sqlite-otlp"), atomically: true, encoding: .utf8)
            let broken = try push(["--otlp", url, "agent.sqlite"], in: directory)
            #expect(broken.status == 1 && broken.errors.contains("not a position of --otlp"))
        }
    }

    /// Goal: one record that a receiver does not take keeps no other from it, and an address that takes nothing loses
    /// none. Method: a receiver that refuses whatever holds the first record, or everything.
    @Test func `a record that is refused alone is counted, and the others are sent`() throws {
        try withTemporaryDirectory { directory in
            func path(_ name: String) -> String { directory.appending(path: name).path }
            let collector = try LoopbackCollector(central: path("hub"))
            defer { collector.stop() }
            var writer = RowWriter(seed: 8)
            try writer.write(40, to: path("agent.sqlite"))
            let count = try ReportStore.open(path: path("agent.sqlite")).status().reportCount
            let url = collector.url + "/v1/logs"
            func answers(_ statuses: [Int]) -> [LoopbackCollector.Mishap] {
                statuses.map {
                    .answer(LoopbackCollector.response($0, $0 == 200 ? "{}" : "bad record"))
                }
            }
            // Everything is refused, the empty request as well: not the records are wrong.
            collector.expect(answers([400, 400]))
            let wrong = try push(["--otlp", url, "agent.sqlite", "--json"], in: directory)
            #expect(
                wrong.status == 1 && wrong.errors.contains("answered 400: bad record"), "\(wrong)")
            #expect(wrong.output.contains(#""refused":0"#), "\(wrong)")
            #expect(collector.requests.count == 2)
            #expect(!FileManager.default.fileExists(atPath: path("agent.sqlite-otlp")))
            // An internal error of everything is not one of the records either.
            collector.expect(answers(Array(repeating: 500, count: 2 * count)))
            let broken = try push(["--otlp", url, "agent.sqlite", "--json"], in: directory)
            #expect(
                broken.status == 1 && broken.errors.contains("answered 500: bad record"),
                "\(broken)")
            #expect(broken.output.contains(#""refused":0"#), "\(broken)")
            #expect(collector.requests.count < 2 + 20, "\(collector.requests.count)")
            collector.expectNothing()
            #expect(!FileManager.default.fileExists(atPath: path("agent.sqlite-otlp")))
            // The whole, the empty request, then the halves that hold the first record, then the other halves.
            var (statuses, size, others) = ([400, 200], count, 0)
            while size > 1 {
                (size, others) = (size / 2, others + 1)
                statuses.append(400)
            }
            collector.expect(answers(statuses + Array(repeating: 200, count: others)))
            let before = collector.requests.count
            let right = try push(["--otlp", url, "agent.sqlite", "--json"], in: directory)
            #expect(right.status == 1 && right.output.contains(#""refused":1"#), "\(right)")
            #expect(right.output.contains(#""sent":\#(count - 1)"#), "\(right)")
            #expect(right.errors.contains("answered 400: bad record"), "\(right)")
            #expect(collector.requests.count == before + statuses.count + others)
            let again = try push(["--otlp", url, "agent.sqlite"], in: directory)
            #expect(again.status == 0 && again.output.contains("sent 0 rows"), "\(again)")
        }
    }

    /// Method: a byte at a time, for longer than anyone waits: five seconds are the least time that an answer has.
    @Test func `an answer that trickles is given up after --wait`() throws {
        try withTemporaryDirectory { directory in
            func path(_ name: String) -> String { directory.appending(path: name).path }
            let collector = try LoopbackCollector(central: path("hub"))
            defer { collector.stop() }
            var writer = RowWriter(seed: 1)
            try writer.write(3, to: path("agent.sqlite"), state: nil)
            let position = LoopbackCollector.response(200, "{\"through\":0}")
            collector.expect([.answer(position), .trickle])
            let result = try push([collector.url, "--wait", "1", "agent.sqlite"], in: directory)
            #expect(result.status == 1, "\(result)")
            #expect(result.errors.contains("no answer within 5 s"), "\(result)")
            #expect(collector.requests.count == 2)
        }
    }
}
#endif
