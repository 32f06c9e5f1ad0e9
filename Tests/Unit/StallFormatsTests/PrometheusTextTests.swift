import Testing

@testable import StallFormats

/// Goal: what node_exporter reads is what was counted, and counters that go on find themselves in the file.
@Suite struct PrometheusTextTests {
    @Test func `a label's value may have quotes, backslashes and spaces`() {
        let series = PrometheusText.series("lost_seconds", ["title": #"a "b" \c"#, "app": "x"])
        #expect(series == #"lost_seconds{title="a \"b\" \\c",app="x"}"#)
        var text = PrometheusText()
        text.family("lost_seconds", .gauge, "Time lost.")
        text.sample(series, 1.5)
        text.sample("runs_total", 7)
        #expect(text.lines[1] == "# TYPE lost_seconds gauge")
        let samples = PrometheusText.samples(in: text.lines.joined(separator: "\n"))
        #expect(samples.map(\.series) == [series[...], "runs_total"])
        #expect(samples.map(\.value) == ["1.5", "7"])
    }

    @Test(arguments: ["", "#", "# a b", "word", "\n\n"])
    func `a text without samples has none`(text: String) {
        #expect(PrometheusText.samples(in: text).isEmpty)
    }
}
