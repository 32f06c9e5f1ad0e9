import Foundation
import TestSupport
import Testing

/// Goal: what is shipped beside the programs refers to options, files and metrics that exist.
/// Method: the files in `packaging/` as text, against the sources that define them.
@Suite struct PackagingTests {
    static func text(_ path: String) throws -> String {
        try String(contentsOf: Repository.root.appending(path: path), encoding: .utf8)
    }

    static func metrics(in text: String) -> Set<String> {
        Set(text.matches(of: /stallctl_[a-z_]+/).map { String($0.0) })
    }

    @Test(arguments: [
        "packaging/prometheus/stallwatch.rules.yml", "packaging/grafana/stallwatch.json",
    ])
    func `alerts and dashboards name metrics that are written`(path: String) throws {
        let written = Self.metrics(in: try Self.text("Sources/stallctl/Jobs/Metrics.swift"))
        let named = Self.metrics(in: try Self.text(path))
        #expect(named.subtracting(written) == [])
        #expect(named.count > 4)
    }

    /// What they say is for `promtool test rules`, which scripts/check-prometheus runs.
    @Test func `every alert has a test that says when it fires`() throws {
        let rules = try Self.text("packaging/prometheus/stallwatch.rules.yml")
        let alerts = Set(rules.matches(of: /- alert: (\w+)/).map { String($0.1) })
        let tests = try Self.text("packaging/prometheus/stallwatch.rules.test.yml")
        let fired = tests.matches(of: /alertname: (\w+)\n +eval_time: .*\n +exp_alerts:\n/)
        #expect(Set(fired.map { String($0.1) }) == alerts)
        #expect(alerts.count > 5)
    }

    @Test func `the dashboard is JSON, and its panels have queries`() throws {
        let object = try JSONSerialization.jsonObject(
            with: Data(Self.text("packaging/grafana/stallwatch.json").utf8))
        let panels = try #require((object as? [String: Any])?["panels"] as? [[String: Any]])
        for panel in panels where panel["type"] as? String != "row" {
            let targets = panel["targets"] as? [[String: Any]] ?? []
            #expect(!targets.isEmpty && targets.allSatisfy { $0["expr"] is String })
        }
    }

    @Test func `the container for development has the packages that setup installs`() throws {
        let setup = try Self.text("scripts/setup")
        let list = try #require(setup.firstMatch(of: /packages=\(([^)]+)\)/)).1
        let image = try Self.text("packaging/Dockerfile")
        for package in list.split(separator: " ") {
            #expect(image.contains(" \(package) "), "\(package)")
        }
        let settings = try JSONSerialization.jsonObject(
            with: Data(Self.text("packaging/devcontainer/devcontainer.json").utf8))
        let build = (settings as? [String: Any])?["build"] as? [String: String]
        #expect(build?["dockerfile"] == "../Dockerfile")
    }

    /// The library exports what its header declares: no less, or C programs do not link; no more, or its Swift runtime meets
    /// another one.
    @Test func `the shared object exports the functions of its header`() throws {
        let header = try Self.text("Sources/CStallAgent/include/stall_agent.h")
        let declared = Set(
            header.split(separator: "\n").filter { !$0.hasPrefix("//") }.joined(separator: "\n")
                .matches(of: /\b(stall_[a-z_]+)\(/).map { String($0.1) })
        let map = try Self.text("packaging/libstallagent.map")
        let exported = Set(map.matches(of: /stall_[a-z_]+\*?/).map { String($0.0) })
        let prefixes = exported.filter { $0.hasSuffix("*") }.map { String($0.dropLast()) }
        #expect(
            declared.filter { name in
                !exported.contains(name) && !prefixes.contains { name.hasPrefix($0) }
            } == [])
        #expect(exported.filter { !$0.hasSuffix("*") && !declared.contains($0) } == [])
    }

    @Test func `the changelog begins with the version that this is`() throws {
        let source = try Self.text("Sources/StallModel/StallwatchVersion.swift")
        let version = try #require(source.firstMatch(of: /stallwatchVersion = "([0-9.]+)(-dev)?"/))
        let changelog = try Self.text("CHANGELOG.md")
        let newest = try #require(changelog.firstMatch(of: /\n## ([0-9.]+) (.*)\n/))
        #expect(newest.1 == version.1)
        #expect((newest.2 == "(unreleased)") == (version.2 != nil))
    }
}
