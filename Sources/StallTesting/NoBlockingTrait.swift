// A trait for swift-testing: the test fails where it calls something that may block.

internal import StallBlocking
public import Testing

/// Makes a test fail at each line where it, or a task that it starts with `async let`, a group or `Task`, calls a function
/// that may block: see ``StallBlocking``'s `forbidBlocking` for which those are.
///
///     @Test(.noBlocking) func `the timeline is read without blocking`() async throws { ... }
///
/// However short the call was: a read of 2 ms is one of 4 s elsewhere. Calls that are repeated from one line count once; 64
/// different ones of a test are held, and one that makes more fails for that as well. Of synchronous code on threads that
/// the test starts itself nothing is known. Tests without the trait are not affected, also in parallel.
public struct NoBlockingTrait: TestTrait, SuiteTrait, TestScoping {
    let rules: [String]

    /// A suite's trait is that of each of its tests.
    public var isRecursive: Bool { true }

    public func scopeProvider(for test: Test, testCase: Test.Case?) -> Self? {
        // Of each case, and not of the test around them as well.
        testCase == nil ? nil : self
    }

    public func provideScope(
        for test: Test, testCase: Test.Case?,
        performing function: @concurrent @Sendable () async throws -> Void
    ) async throws {
        let scope = BlockingScope(allowing: rules)
        do {
            try await BlockingScope.$current.withValue(scope.number) { try await function() }
        } catch {
            await scope.endAndRecord(as: test)
            throw error
        }
        await scope.endAndRecord(as: test)
    }
}

extension BlockingScope {
    fileprivate func endAndRecord(as test: Test) async {
        // An outer trait's task local is not of what this does.
        let (calls, isIncomplete) = await Self.$current.withValue(0) { await end() }
        for call in calls { call.record(as: test) }
        if isIncomplete {
            Issue.record("more calls may block than are held", sourceLocation: test.sourceLocation)
        }
    }
}

extension Trait where Self == NoBlockingTrait {
    /// The test must not block.
    public static var noBlocking: Self { NoBlockingTrait(rules: []) }

    /// The test must not block, but for these functions: patterns as `forbidBlocking` takes them.
    public static func noBlocking(allowing rules: [String]) -> Self {
        NoBlockingTrait(rules: rules)
    }
}

extension BlockingScope.Call {
    /// Records an issue at the innermost line of the package, of the test or of what it calls.
    fileprivate func record(as test: Test) {
        let text = "\(name) may block: \(functions.prefix(4).joined(separator: " <- "))"
        guard let file, let line else {
            Issue.record("\(text)", sourceLocation: test.sourceLocation)
            return
        }
        let base = file.split(separator: "/").last.map(String.init) ?? file
        Issue.record(
            "\(text)",
            sourceLocation: SourceLocation(
                fileID: "\(module ?? "Unknown")/\(base)", filePath: file, line: line, column: 1))
    }
}
