// Frames as numbers: whether two are the same function, or at the same line of it, is asked for each pair of samples, and
// comparing names takes most of the time.

package import StallModel

/// A frame's function, and what is visible of the frame.
package struct FrameNumber: Hashable {
    /// Of the function, wherever it is in it.
    package var function: Int32
    /// Of the function at a line.
    var line: Int32
}

/// Numbers functions and their lines from 0, in order of first occurrence.
package struct FrameNumbers {
    private struct Function: Hashable {
        var title: String
        var image: Int32?
    }

    private struct Line: Hashable {
        var function: Int32
        var file: Int32?
        var line: Int?
        var isInlined, isAwaiting: Bool
    }

    private var functions: [Function: Int32] = [:]
    private var lines: [Line: Int32] = [:]
    /// Of images and files.
    private var paths: [String: Int32] = [:]

    package init() {}

    package mutating func number(of frame: Frame) -> FrameNumber {
        let function = Function(title: frame.title, image: frame.imagePath.map { path($0) })
            .number(in: &functions)
        let line = Line(
            function: function, file: frame.file.map { path($0) }, line: frame.line,
            isInlined: frame.isInlined, isAwaiting: frame.kind == .asyncResume)
        return FrameNumber(function: function, line: line.number(in: &lines))
    }

    package mutating func path(_ path: String) -> Int32 { path.number(in: &paths) }

    /// The number of a frame's function, if it has one already.
    package func function(of frame: Frame) -> Int32? {
        let image = frame.imagePath.map { paths[$0] }
        // A path without a number is no path of a known function's.
        if case .some(nil) = image { return nil }
        return functions[Function(title: frame.title, image: image ?? nil)]
    }
}

extension Hashable {
    fileprivate func number(in numbers: inout [Self: Int32]) -> Int32 {
        if let known = numbers[self] { return known }
        let number = Int32(numbers.count)
        numbers[self] = number
        return number
    }
}
