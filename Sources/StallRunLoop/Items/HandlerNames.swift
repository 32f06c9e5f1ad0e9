// The functions of handlers, for the dump: which timer is it that has no label?

internal import CLinux
internal import Glibc

/// A handler of an item, kept by a dump until it is named: the name is looked up in files, without the loop's lock.
struct DumpedHandler {
    private let words: (function: UInt64, context: UInt64)
    private let kept: Any

    /// Of a struct that holds one closure, which is passed as it is: a closure alone would be wrapped in another one.
    fileprivate init<Holder>(holding holder: Holder) {
        words = withUnsafeBytes(of: holder) {
            (
                $0.loadUnaligned(as: UInt64.self),
                $0.loadUnaligned(fromByteOffset: 8, as: UInt64.self)
            )
        }
        kept = holder
    }

    /// `closure #1 in Clock.start()`; nil without a symbol.
    var name: String? {
        withExtendedLifetime(kept) {
            withUnsafeTemporaryAllocation(of: CChar.self, capacity: 512) { buffer in
                let symbol = buffer.baseAddress!
                guard
                    stall_handler_name(
                        words.function, UnsafePointer(bitPattern: UInt(words.context)),
                        "$s12StallRunLoop", symbol, buffer.count)
                else { return nil }
                guard let readable = stall_demangle(symbol, strlen(symbol)) else {
                    return String(cString: symbol)
                }
                defer { free(readable) }
                return Self.shortened(String(cString: readable))
            }
        }
    }

    /// A demangled name as the dump shows it. A closure of a `main.swift` is in no function.
    static func shortened(_ demangled: String) -> String {
        let prefix = "partial apply for "
        let name =
            demangled.hasPrefix(prefix) ? String(demangled.dropFirst(prefix.count)) : demangled
        return name.hasSuffix(" in ") ? name + "top-level code" : name
    }
}

private struct TimerHandler { let call: (LoopTimer) -> Void }
private struct SourceHandler { let call: (LoopSource) -> Void }
private struct ObserverHandler { let call: (LoopObserver, LoopActivity) -> Void }
private struct DescriptorHandler { let call: (DescriptorSource, DescriptorEvents) -> Void }

extension DumpedHandler {
    init(_ call: @escaping (LoopTimer) -> Void) { self.init(holding: TimerHandler(call: call)) }
    init(_ call: @escaping (LoopSource) -> Void) { self.init(holding: SourceHandler(call: call)) }
    init(_ call: @escaping (LoopObserver, LoopActivity) -> Void) {
        self.init(holding: ObserverHandler(call: call))
    }
    init(_ call: @escaping (DescriptorSource, DescriptorEvents) -> Void) {
        self.init(holding: DescriptorHandler(call: call))
    }
}

extension LoopTimer {
    /// For a dump, with the loop's lock held.
    var dumpedHandler: DumpedHandler? {
        // A generic function, as `map` is, would put a thunk around it.
        guard let handler else { return nil }
        return DumpedHandler(handler)
    }
}

extension LoopObserver {
    /// For a dump, with the loop's lock held.
    var dumpedHandler: DumpedHandler? {
        guard let handler else { return nil }
        return DumpedHandler(handler)
    }
}
