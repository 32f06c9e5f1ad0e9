// `completions`: the argument parser writes the script; here is the command that asks for it.

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

    /// The shells that the argument parser knows.
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
