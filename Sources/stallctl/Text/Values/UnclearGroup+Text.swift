// The error for a name that matches no group, or several.

internal import StallAnalysis
internal import StallModel
import StallQuery

extension UnclearGroup: CustomStringConvertible, QuestionError {
    var kind: ErrorKind { found.isEmpty ? .nothing : .question }

    package var description: String {
        guard found.isEmpty else {
            let some = found.prefix(4).map {
                "\(hexadecimal($0.group.signature).prefix(8)) \($0.title)"
            }
            return "\(path): '\(name)' matches \(found.count) groups: "
                + some.joined(separator: "; ") + (found.count > 4 ? "; ..." : "")
                + "; give the digits before a title instead"
        }
        let functions = known.compactMap(\.frames.first).map { String($0.prefix { $0 != "(" }) }
        let hint = Suggestion.closest(to: name, in: functions).map { "did you mean '\($0)'?" }
        return "\(path): no group's title contains '\(name)'; "
            + (hint ?? "'stallctl top' lists the groups")
    }
}
