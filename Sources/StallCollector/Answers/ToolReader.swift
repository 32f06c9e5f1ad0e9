// Answers readers by running stallctl on the central store: a browser gets the same bytes as a terminal. One process
// per question: a question that is too large ends with its process, and takes neither memory nor time of the senders.

internal import Foundation
internal import Glibc
internal import StallClickHouse
internal import StallModel

/// Runs stallctl for each question.
package struct ToolReader: CollectorReader {
    private let tool: String
    private let store: String
    private let seconds: Int
    private let byteLimit: Int

    /// - Parameters:
    ///   - tool: The path of stallctl.
    ///   - store: The central store: a path, or the address of a cluster.
    ///   - seconds: After this long a question is given up.
    ///   - byteLimit: The longest answer.
    package init(
        tool: String, store: String, seconds: Int = 60, byteLimit: Int = 64 << 20
    ) {
        self.tool = tool
        // The process runs elsewhere.
        self.store = ClickHouseAddress.isAddress(store) ? store : URL(filePath: store).path
        (self.seconds, self.byteLimit) = (seconds, byteLimit)
    }

    package func answer(_ question: ReadQuestion) throws -> ReadAnswer {
        let (status, output, error) = try run(try Self.arguments(question, store: store))
        switch (status, error.kind) {
        case (0, _): break
        // Without the reports of a shard that is down, as the key `partial` and the page's first note show.
        case (3, _): break
        // The reader can do something about these; about a store that cannot be read, the operator.
        case (_, .usage), (_, .question): throw ReadQuestionError(error.message)
        case (_, .nothing): return .nothing("there is no such report or group")
        case (_, .failure): throw ToolFailure(description: error.message)
        }
        if question.kind == .report {
            return .page(output, policy: try Self.policy(ofPage: output))
        }
        var lines = output.split(separator: 0x0a).map { String(decoding: $0, as: UTF8.self) }
        if question.kind == .show, !question.apps.isEmpty {
            lines = try lines.filter { question.apps.contains(try Self.app(ofReport: $0)) }
            guard !lines.isEmpty else { return .nothing("there is no such report or group") }
        }
        return .lines(lines)
    }

    // MARK: - The question as arguments

    /// The parameters that a question may have. Each becomes one argument, so that no value of one is taken for an option.
    private static let filters = ["version", "host", "loop", "cause", "since", "until"]
    private static func parameters(_ kind: ReadQuestion.Kind) -> [String] {
        switch kind {
        case .top: filters + ["app", "by", "group", "limit"]
        case .diff: filters + ["app", "a", "b", "group"]
        case .trend: filters + ["app", "name", "by"]
        case .list: filters + ["app", "limit"]
        case .report: filters + ["app", "limit"]
        case .show: ["id"]
        case .status: []
        }
    }

    static func arguments(
        _ question: ReadQuestion, store: String
    ) throws(ReadQuestionError) -> [String] {
        let known = parameters(question.kind)
        if let stranger = question.parameters.first(where: { !known.contains($0.name) }) {
            throw .init(
                "no parameter '\(stranger.name)'; there are: \(known.joined(separator: ", "))")
        }
        guard !question.parameters.contains(where: { $0.value.utf8.contains(0) }) else {
            throw .init("a value has a zero byte")
        }
        var arguments = [question.kind.rawValue, "--store=\(store)"]
        if question.kind != .report { arguments.append("--json") }
        var operands: [String] = []
        for (name, value) in question.parameters where name != "app" {
            switch name {
            case "a", "b", "id", "name": continue
            default: arguments.append("--\(name)=\(value)")
            }
        }
        arguments += try apps(question).map { "--app=\($0)" }
        switch question.kind {
        case .diff:
            for side in ["a", "b"] {
                guard let value = question.value(side), !value.isEmpty else {
                    throw .init("a and b are two versions or ranges of time")
                }
                // stallctl takes paths of stores here; a reader may query one store only.
                guard !value.contains("/"), !value.hasPrefix(".") else {
                    throw .init("\(side) is a version or a range of time")
                }
                operands.append(value)
            }
        case .show:
            let id = question.value("id") ?? "latest"
            guard id == "latest" || id.utf8.count >= 8 && id.allSatisfy(\.isHexDigit) else {
                throw .init("id is 'latest' or at least eight digits of a report's id")
            }
            // The latest of all may be another app's.
            guard id != "latest" || question.apps.isEmpty else { throw .init("id is needed") }
            operands.append(id)
        case .trend: operands += question.value("name").map { [$0] } ?? []
        default: break
        }
        return arguments + (operands.isEmpty ? [] : ["--"] + operands)
    }

    /// The apps to ask for: those asked for, as far as the token is for them.
    private static func apps(_ question: ReadQuestion) throws(ReadQuestionError) -> [String] {
        guard question.kind != .show else { return [] }
        if question.kind == .status {
            guard question.apps.isEmpty else {
                throw .init("status is of all apps, and the token is not")
            }
            return []
        }
        let asked = question.values("app")
        // An asterisk is stallctl's word for every app.
        guard !question.apps.isEmpty else { return asked.isEmpty ? ["*"] : asked }
        guard asked.allSatisfy(question.apps.contains) else {
            throw .init("the token is not for that app")
        }
        return asked.isEmpty ? question.apps : asked
    }

    // MARK: - The process

    private func run(
        _ arguments: [String]
    ) throws -> (status: Int32, output: [UInt8], error: ToolError) {
        let (process, output, complaints) = (Process(), Pipe(), Pipe())
        process.executableURL = URL(filePath: tool)
        process.arguments = arguments
        // No settings of a user, and a folder in which no version has the name of a file.
        var environment = ["PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "TZ": "UTC"]
        environment["STALLCTL_ERRORS"] = "json"
        let password = ClickHouseAddress.passwordVariable
        environment[password] = ProcessInfo.processInfo.environment[password]
        process.environment = environment
        process.currentDirectoryURL = URL(filePath: "/")
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = output
        process.standardError = complaints
        try process.run()
        let deadline = DispatchTime.now() + .seconds(seconds)
        let pid = process.processIdentifier
        let end = DispatchWorkItem { kill(pid, SIGKILL) }
        DispatchQueue.global().asyncAfter(deadline: deadline, execute: end)
        // Complaints are a few lines: a pipe holds them while the output is read.
        var bytes: [UInt8] = []
        while bytes.count <= byteLimit {
            let part = output.fileHandleForReading.availableData
            if part.isEmpty { break }
            bytes += part
        }
        let isTooLong = bytes.count > byteLimit
        if isTooLong {
            kill(pid, SIGKILL)
            try? output.fileHandleForReading.close()
        }
        let text = complaints.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        end.cancel()
        if isTooLong { throw ReadQuestionError("the answer is too long: ask for less") }
        guard process.terminationReason == .exit else {
            throw ReadQuestionError("the answer takes too long: ask for less")
        }
        return (process.terminationStatus, bytes, ToolError(text))
    }

    // MARK: - Answers

    /// The policy that the page names itself: a header holds also where an element is ignored.
    static func policy(ofPage page: [UInt8]) throws -> String {
        let text = String(decoding: page.prefix(4096), as: UTF8.self)
        guard let start = text.range(of: "http-equiv=\"Content-Security-Policy\" content=\""),
            let end = text[start.upperBound...].firstIndex(of: "\"")
        else { throw ToolFailure(description: "the page of stallctl report names no policy") }
        return String(text[start.upperBound..<end])
    }

    private static func app(ofReport line: String) throws -> String {
        struct Report: Decodable { var app: String }
        return try JSONDecoder().decode(Report.self, from: Data(line.utf8)).app
    }
}

/// The error that stallctl ended with.
private struct ToolError {
    /// The values of `kind` in `stallctl.error/1`.
    enum Kind: String, Decodable { case usage, question, nothing, failure }

    var kind = Kind.failure
    var message: String

    private struct Line: Decodable { var kind: Kind, message: String }

    /// - Parameter text: Standard error. Its last line is the error; a program that dies may write none.
    init(_ text: Data) {
        let last = text.split(separator: UInt8(ascii: "\n")).last ?? Data()
        if let line = try? JSONDecoder().decode(Line.self, from: last) {
            (kind, message) = (line.kind, line.message)
        } else {
            message = String(decoding: last.prefix(2000), as: UTF8.self)
        }
    }
}

/// stallctl could not answer.
private struct ToolFailure: Error, CustomStringConvertible {
    var description: String
}
