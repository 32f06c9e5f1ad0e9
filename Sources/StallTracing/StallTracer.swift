// Open spans for reports: a tracer around the app's tracer notes when spans begin and end. The current span is a task
// local, which only its own thread can read, not the watchdog.

#if Tracing
internal import CLinux
public import Tracing

/// Notes the open spans of another tracer, so that the report of a stall lists those that were open on its loop, with
/// name, trace id and age.
///
///     InstrumentationSystem.bootstrap(StallTracer(tracer))
///
/// A report lists at most eight, as evidence *open span*: they are not accused. Only a span of the task that stalled is
/// called *span*. The trace id is what the tracer injects: `traceparent`, B3, or a key that contains `trace-id`.
///
/// Limits: 1,024 open spans of the process; names of 63 bytes. Cost: about a microsecond per span, mostly for the trace
/// id. It needs no monitor, and without one only takes this time.
public struct StallTracer<Wrapped: Tracer>: Tracer {
    private let wrapped: Wrapped

    /// - Parameter wrapped: The app's tracer. It gets every call unchanged.
    public init(_ wrapped: Wrapped) { self.wrapped = wrapped }

    public func startSpan<Instant: TracerInstant>(
        _ operationName: String, context: @autoclosure () -> InstrumentationContext,
        ofKind kind: SpanKind, at instant: @autoclosure () -> Instant, function: String,
        file fileID: String, line: UInt
    ) -> StallSpan<Wrapped.Span> {
        let span = wrapped.startSpan(
            operationName, context: context(), ofKind: kind, at: instant(), function: function,
            file: fileID, line: line)
        var carrier: [String: String] = [:]
        wrapped.inject(span.context, into: &carrier, using: HeaderInjector())
        return StallSpan(span, OpenSpan(operationName, trace: traceID(in: carrier)))
    }

    public func activeSpan(identifiedBy context: InstrumentationContext) -> StallSpan<Wrapped.Span>?
    {
        wrapped.activeSpan(identifiedBy: context).map { StallSpan($0, nil) }
    }

    @available(*, deprecated)
    public func forceFlush() { wrapped.forceFlush() }

    public func extract<Carrier, Extract: Extractor>(
        _ carrier: Carrier, into context: inout InstrumentationContext, using extractor: Extract
    ) where Extract.Carrier == Carrier {
        wrapped.extract(carrier, into: &context, using: extractor)
    }

    public func inject<Carrier, Inject: Injector>(
        _ context: InstrumentationContext, into carrier: inout Carrier, using injector: Inject
    ) where Inject.Carrier == Carrier {
        wrapped.inject(context, into: &carrier, using: injector)
    }
}

/// A span of the wrapped tracer, listed until it ends.
public struct StallSpan<Wrapped: Tracing.Span>: Tracing.Span {
    private let wrapped: Wrapped
    /// Nil for another reference to a span that is listed already.
    private let open: OpenSpan?

    fileprivate init(_ wrapped: Wrapped, _ open: OpenSpan?) {
        self.wrapped = wrapped
        self.open = open
    }

    public var context: InstrumentationContext { wrapped.context }
    public var operationName: String {
        get { wrapped.operationName }
        nonmutating set { wrapped.operationName = newValue }
    }
    public var attributes: SpanAttributes {
        get { wrapped.attributes }
        nonmutating set { wrapped.attributes = newValue }
    }
    public var isRecording: Bool { wrapped.isRecording }

    public func setStatus(_ status: SpanStatus) { wrapped.setStatus(status) }
    public func addEvent(_ event: SpanEvent) { wrapped.addEvent(event) }
    public func addLink(_ link: SpanLink) { wrapped.addLink(link) }

    public func recordError<Instant: TracerInstant>(
        _ error: any Error, attributes: SpanAttributes, at instant: @autoclosure () -> Instant
    ) {
        wrapped.recordError(error, attributes: attributes, at: instant())
    }

    public func end<Instant: TracerInstant>(at instant: @autoclosure () -> Instant) {
        open?.end()
        wrapped.end(at: instant())
    }
}

/// An entry in the list of open spans. A span that is never ended leaves it with its last reference.
private final class OpenSpan: Sendable {
    private let number: UInt64

    init(_ name: String, trace: String?) {
        var (name, trace) = (name, trace ?? "")
        number = name.withUTF8 { name in
            trace.withUTF8 { trace in
                stall_span_begin(
                    UnsafeRawPointer(name.baseAddress)?.assumingMemoryBound(to: CChar.self),
                    UInt32(clamping: name.count),
                    UnsafeRawPointer(trace.baseAddress)?.assumingMemoryBound(to: CChar.self),
                    UInt32(clamping: trace.count))
            }
        }
    }

    deinit { stall_span_end(number) }

    func end() { stall_span_end(number) }
}

private struct HeaderInjector: Injector {
    func inject(_ value: String, forKey key: String, into carrier: inout [String: String]) {
        carrier[key.lowercased()] = value
    }
}

/// The trace id in what a tracer injects, whatever its format.
private func traceID(in carrier: [String: String]) -> String? {
    func part(_ number: Int, of key: String, at separator: Character) -> String? {
        guard let parts = carrier[key]?.split(separator: separator), parts.count > number else {
            return nil
        }
        return String(parts[number])
    }
    return part(1, of: "traceparent", at: "-") ?? part(0, of: "b3", at: "-")
        ?? part(0, of: "uber-trace-id", at: ":")
        ?? carrier.first { $0.key.contains("trace-id") || $0.key.contains("traceid") }?.value
}
#endif
