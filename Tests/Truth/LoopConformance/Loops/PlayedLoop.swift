// The operations of a scenario, so that one text runs on EventRunLoop and on the real CFRunLoop. Modes are given by
// name; "default" and "common" are each loop's own.

/// Anything that is added to a loop.
package protocol PlayedItem: AnyObject {
    var isValid: Bool { get }
    func invalidate()
}

package protocol PlayedSource: PlayedItem {
    var isSignalled: Bool { get }
    func signal()
}

package protocol PlayedTimer: PlayedItem {
    /// Seconds; 0 when it does not repeat.
    var interval: Double { get }
    /// Seconds.
    var tolerance: Double { get set }
    func setNextFire(in seconds: Double)
}

/// A loop on which scenarios run. Times are in seconds.
package protocol PlayedLoop: AnyObject {
    static var current: any PlayedLoop { get }

    func observer(
        _ activities: UInt, repeats: Bool, order: Int,
        _ handler: @escaping (any PlayedItem, UInt) -> Void
    ) -> any PlayedItem
    /// `scheduling` is called with true and the mode after adding, with false after removing.
    func source(
        order: Int, scheduling: ((Bool, String) -> Void)?, _ handler: @escaping () -> Void
    ) -> any PlayedSource
    /// A version-1 source. `takes` says that the loop, or its stand-in here, reads the eventfd's eight bytes.
    func descriptor(_ descriptor: CInt, takes: Bool, _ handler: @escaping () -> Void)
        -> any PlayedSource
    func timer(
        in seconds: Double, every interval: Double, _ handler: @escaping (any PlayedTimer) -> Void
    ) -> any PlayedTimer

    func add(_ item: any PlayedItem, _ mode: String)
    func remove(_ item: any PlayedItem, _ mode: String)
    func contains(_ item: any PlayedItem, _ mode: String) -> Bool
    func addCommonMode(_ mode: String)
    func perform(_ modes: [String], _ block: @escaping () -> Void)

    /// Returns the raw value of the result: 1 finished, 2 stopped, 3 timed out, 4 handled source.
    func run(_ mode: String, _ seconds: Double, returnAfterSourceHandled: Bool) -> Int
    func run()
    func wakeUp()
    func stop()
    var isWaiting: Bool { get }
    var currentMode: String? { get }
}

/// Carries what the compiler cannot see is safe: scenarios hand closures to the one thread that runs the loop.
package struct Unchecked<Value>: @unchecked Sendable {
    package let value: Value
    package init(_ value: Value) { self.value = value }
}
