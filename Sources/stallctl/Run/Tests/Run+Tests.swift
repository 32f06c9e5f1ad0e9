// `run -- swift test`: the command with its event stream, and the end that it leads to.

internal import ArgumentParser
internal import Glibc
internal import StallInspection
internal import StallModel

extension Run {
    func run(
        _ test: SwiftTestCommand, _ program: ProgramFile, _ environment: RunEnvironment
    ) throws {
        var followed: TestRun
        do {
            guard let names = SwiftTestCommand.streamOptions(of: program) else {
                throw RunProblem("the tests are not followed: this Swift writes no event stream")
            }
            followed = try TestRun(
                test, command, names, tests.limits, tests.format ?? .text,
                store: hangStore(environment))
        } catch {
            say("stallctl: \(error)".printable)
            InheritedProcess.current.restore()
            throw ExitCode(program.execute(command, environment) == 0 ? 0 : 126)
        }
        // Processes whose parents have ended stay below this one, and can be ended with the others.
        ProcessTree.adoptOrphans()
        let began = UnixTime.now
        let end: ChildProgram.End
        let command = followed.command
        do {
            end = try ChildProgram.run(program, command, environment, every: TestRun.interval) {
                followed.look()
            }
        } catch {
            say("stallctl: \(command[0]): \(String(cString: strerror(error.errno)))".printable)
            throw ExitCode(126)
        }
        let wasKilled = followed.hasKilled
        followed.removeStream()
        followed.closeStore()
        if summary { sayRanking(since: began, program, environment) }
        if wasKilled { throw ExitCode(TestRun.killedStatus) }
        end.endLikewise()
    }

    /// Only if one is named: there is no store of a working directory that tests would fill unasked.
    private func hangStore(_ environment: RunEnvironment) -> HangStore? {
        store.map { path in
            HangStore(
                path: environment.storePath(option: path),
                app: HangStore.App(name: app, version: appVersion),
                limit: tests.limits.test ?? .seconds(60))
        }
    }
}
