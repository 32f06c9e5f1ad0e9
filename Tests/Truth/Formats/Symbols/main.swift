// Prints the functions, files and lines that a dSYM has for addresses, as llvm-symbolizer does with --inlines.
//
//     dsym-truth [--sabotage] FILE UUID < OFFSETS
//
// OFFSETS are of interrupted instructions, hexadecimal, one a line, from the image's load address on. For each there
// are lines `NAME\tFILE\tLINE`, innermost first, and an empty one. --sabotage looks up the byte before.

import StallModel
import StallSymbols

var arguments = Array(CommandLine.arguments.dropFirst())
let isSabotaged = arguments.first == "--sabotage"
if isSabotaged { arguments.removeFirst() }
guard arguments.count == 2,
    let id = BuildID(hexadecimal: arguments[1].filter { $0 != "-" }.lowercased())
else { fatalError("usage: dsym-truth [--sabotage] FILE UUID < OFFSETS") }

let image = Image(path: "App", buildID: id, loadAddress: 0, endAddress: .max)
var options = SymbolizerOptions()
options.files = [id: [arguments[0]]]
options.budget = .seconds(3600)
options.debugInformationLimit = 1 << 30
var locations: [CodeLocation] = []
while let line = readLine() {
    guard let offset = UInt64(line, radix: 16) else { fatalError("\(line) is no offset") }
    locations.append(
        CodeLocation(
            imagePath: "App", buildID: id, offset: offset,
            kind: isSabotaged ? .returnAddress : .interrupted))
}
let frames = Symbolizer(options: options).frames(
    for: locations, images: ImageTable(images: [image]))
for location in locations {
    for frame in frames[location] ?? [] {
        print(
            "\(frame.rawName ?? "??")\t\(frame.file ?? "??")\t\(frame.line ?? 0)")
    }
    print("")
}
