// A report of hung tests as workflow commands: each is an annotation at the test's line.
//
// Source: docs.github.com, "Workflow commands for GitHub Actions"; actions/toolkit, packages/core/src/command.ts, for
// the escapes.

internal import StallModel

extension HangReport {
    /// One annotation for each test; one without a line if no test is known.
    var gitHubLines: [String] {
        let title = "Hung test"
        guard !tests.isEmpty else {
            return [GitHubCommand.error(sentence.printable, file: nil, line: nil, title: title)]
        }
        return tests.map { test in
            GitHubCommand.error(
                ([sentence] + test.textLines).map(\.printable).joined(separator: "\n"),
                file: test.description.path, line: test.description.line, title: title)
        }
    }
}

enum GitHubCommand {
    /// `::error file=...,line=...,title=...::message`
    static func error(_ message: String, file: String?, line: Int?, title: String) -> String {
        var properties: [String] = []
        if let file { properties.append("file=" + escapedProperty(file)) }
        if file != nil, let line { properties.append("line=\(line)") }
        properties.append("title=" + escapedProperty(title))
        return "::error " + properties.joined(separator: ",") + "::" + escapedMessage(message)
    }

    static func escapedMessage(_ text: String) -> String {
        text.reduce(into: "") { result, character in
            // A line's end of two characters is one Character.
            for scalar in character.unicodeScalars {
                switch scalar {
                case "%": result += "%25"
                case "\r": result += "%0D"
                case "\n": result += "%0A"
                default: result.unicodeScalars.append(scalar)
                }
            }
        }
    }

    static func escapedProperty(_ text: String) -> String {
        escapedMessage(text).reduce(into: "") { result, character in
            switch character {
            case ":": result += "%3A"
            case ",": result += "%2C"
            default: result.append(character)
            }
        }
    }
}
