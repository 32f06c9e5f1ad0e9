// `token`: the file of tokens.

#if Collector
internal import ArgumentParser
internal import Glibc
internal import StallCollector

struct TokenCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "token", abstract: "Add, list and remove tokens.",
        subcommands: [Add.self, List.self, Remove.self])

    struct FileOption: ParsableArguments {
        @Option(help: ArgumentHelp("The file of tokens; created if missing.", valueName: "path"))
        var tokens: String
    }

    struct Add: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Make a token and print it, once: only its hash is kept.",
            discussion: """
                A running collector knows it at once. To replace a token, add the new one,
                give it to the senders, then remove the old one.

                EXAMPLES
                  stall-collector token add --app photos --write --tokens tokens
                  stall-collector token add --app '*' --read --tokens tokens
                """)

        @OptionGroup var file: FileOption

        @Option(
            help: ArgumentHelp(
                "The app that it is for; '*' for every app. Repeatable.", valueName: "name"))
        var app: [String]

        @Flag(help: "For senders.") var write = false
        @Flag(help: "For readers.") var read = false

        func validate() throws {
            guard write != read else {
                throw ValidationError("a token is for one of --write and --read.")
            }
            guard !app.contains("") else { throw ValidationError("--app is empty.") }
        }

        func run() throws {
            let made = CollectorToken.make(write ? .write : .read, apps: app)
            try change(file.tokens) { $0.tokens.append(made.token) }
            print(made.text)
        }
    }

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List tokens: the beginning of their hash, right, apps.")

        @OptionGroup var file: FileOption

        func run() throws {
            let tokens: CollectorTokens
            do { tokens = try TokenFile.read(file.tokens) } catch {
                say("\(file.tokens): \(error)")
                throw ExitCode.failure
            }
            for token in tokens.tokens {
                let apps = token.apps.map(\.debugDescription).joined(separator: " ")
                print("\(token.id) \(token.right.rawValue) \(apps)")
            }
        }
    }

    struct Remove: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Remove a token. A running collector refuses it within a second.")

        @OptionGroup var file: FileOption

        @Argument(help: ArgumentHelp("As token list names it.", valueName: "id"))
        var id: String

        func run() throws {
            var removed = 0
            try change(file.tokens) { tokens in
                let before = tokens.tokens.count
                tokens.tokens.removeAll { $0.id == id }
                removed = before - tokens.tokens.count
            }
            guard removed > 0 else {
                say("\(file.tokens): there is no token \(id)")
                throw ExitCode.failure
            }
        }
    }

    private static func change(
        _ path: String, _ body: (inout CollectorTokens) -> Void
    ) throws {
        do { try TokenFile.change(path, body) } catch {
            say("\(path): \(error)")
            throw ExitCode.failure
        }
    }
}

/// A line for the operator.
func say(_ text: String) {
    let shown = String(
        String.UnicodeScalarView(
            text.unicodeScalars.map { $0.value < 0x20 || $0.value == 0x7f ? "?" : $0 }))
    let line = "stall-collector: \(shown)\n"
    _ = write(STDERR_FILENO, line, line.utf8.count)
}
#endif
