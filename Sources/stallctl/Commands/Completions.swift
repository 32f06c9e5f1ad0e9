// `completions`: prints the shell completion script that ArgumentParser generates.

internal import ArgumentParser

struct Completions: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Print a shell completion script.",
        discussion: """
            EXAMPLES
              stallctl completions bash > ~/.local/share/bash-completion/completions/stallctl
              stallctl completions zsh > ~/.zfunc/_stallctl
              stallctl completions fish > ~/.config/fish/completions/stallctl.fish
            """)

    /// The shells that ArgumentParser supports.
    enum Shell: String, CaseIterable, ExpressibleByArgument {
        case bash, zsh, fish
    }

    @Argument(help: ArgumentHelp("The shell.", valueName: "shell"))
    var shell: Shell

    func run() throws {
        let completionShell: CompletionShell =
            switch shell {
            case .bash: .bash
            case .zsh: .zsh
            case .fish: .fish
            }
        try Output.write(lines: [Stallctl.completionScript(for: completionShell)])
    }
}
