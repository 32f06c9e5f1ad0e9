// The interpreter whose frames are added to stacks.

internal import CStackCapture
internal import StallModel

/// CPython in this process.
package enum PythonInterpreter {
    /// The symbols that an interpreter is found by; all are exported.
    package static let symbols = ["_PyRuntime", "Py_Version", "_PyEval_EvalFrameDefault"]

    /// From now on stacks of threads that execute Python have its frames, if its version is known.
    ///
    /// - Parameters:
    ///   - image: The addresses of its image.
    ///   - symbol: The address and size of one of ``symbols``; nil if the image has none of that name.
    /// **Thread safety:** any thread.
    @discardableResult
    package static func use(
        image: Range<UInt64>, _ symbol: (String) -> (address: UInt64, size: UInt64)?
    ) -> Bool {
        guard let runtime = symbol(symbols[0]), let version = symbol(symbols[1]),
            let evaluation = symbol(symbols[2])
        else { return false }
        var python = stall_python(
            runtime: runtime.address, version: version.address, evaluate_low: evaluation.address,
            evaluate_high: evaluation.address &+ evaluation.size, image_low: image.lowerBound,
            image_high: image.upperBound)
        return stall_python_use(&python)
    }
}

extension ScriptFrame {
    /// Reads what a frame from a capture shows; nil if its code is gone.
    init?(_ frame: stall_frame) {
        var place = stall_python_place()
        guard stall_python_describe(frame.address, frame.identity, frame.position, &place) else {
            return nil
        }
        self.init(
            function: Self.text(place.function), file: Self.text(place.file),
            line: place.line > 0 ? Int(place.line) : nil)
        if file?.isEmpty == true { file = nil }
    }

    private static func text<Bytes>(_ bytes: Bytes) -> String {
        withUnsafeBytes(of: bytes) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    }
}
