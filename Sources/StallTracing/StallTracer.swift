// Open spans for reports: a tracer around the app's tracer notes when spans begin and end. The current span is a task
// local, which only its own thread can read, not the watchdog.

#if Tracing
internal import CLinux
public import Tracing

/// Notes the open spans of another tracer, so that the report of a stall lists those that were open on its loop, with
/// name, trace and span id, and age. A span that is renamed, or gets the attribute `http.route`, is listed with that: the
/// tracing middleware of Hummingbird knows the route only when the handler has run.
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
        return StallSpan(span, OpenSpan(operationName, identifiers(of: span.context)))
    }

    public func activeSpan(identifiedBy context: InstrumentationContext) -> StallSpan<Wrapped.Span>?
    {
        wrapped.activeSpan(identifiedBy: context).map { span in
            StallSpan(span, OpenSpan(listed: identifiers(of: span.context)))
        }
    }

    private func identifiers(of context: InstrumentationContext) -> (trace: String, span: String) {
        var carrier: [String: String] = [:]
        wrapped.inject(context, into: &carrier, using: HeaderInjector())
        return StallTracing.identifiers(in: carrier)
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
    /// Nil for a span that is not listed: there was no room, or it has no ids by which it is found.
    private let open: OpenSpan?

    fileprivate init(_ wrapped: Wrapped, _ open: OpenSpan?) {
        self.wrapped = wrapped
        self.open = open
    }

    public var context: InstrumentationContext { wrapped.context }
    public var operationName: String {
        get { wrapped.operationName }
        nonmutating set {
            wrapped.operationName = newValue
            open?.rename(newValue)
        }
    }
    public var attributes: SpanAttributes {
        get { wrapped.attributes }
        nonmutating set {
            let before = Self.route(in: wrapped.attributes)
            wrapped.attributes = newValue
            // Another attribute does not take back the name that the app gave it after the route.
            guard let open, let route = Self.route(in: newValue), route != before else { return }
            // The name that the conventions of OpenTelemetry give to the span of a request.
            if case .string(let method) = newValue.get("http.request.method") {
                open.rename("\(method) \(route)")
            } else {
                open.rename(route)
            }
        }
    }
    private static func route(in attributes: SpanAttributes) -> String? {
        if case .string(let route) = attributes.get("http.route") { route } else { nil }
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

/// An entry in the list of open spans. A span that is never ended leaves it with the last reference that began it.
private final class OpenSpan: Sendable {
    private let number: UInt64
    private let isOwner: Bool

    /// The entry of a span that another reference began; nil if there is none.
    init?(listed identifiers: (trace: String, span: String)) {
        number = withText(identifiers.trace) { trace, traceLength in
            withText(identifiers.span) { span, spanLength in
                stall_span_find(trace, traceLength, span, spanLength)
            }
        }
        isOwner = false
        if number == 0 { return nil }
    }

    init(_ name: String, _ identifiers: (trace: String, span: String)) {
        isOwner = true
        number = withText(name) { name, nameLength in
            withText(identifiers.trace) { trace, traceLength in
                withText(identifiers.span) { span, spanLength in
                    stall_span_begin(name, nameLength, trace, traceLength, span, spanLength)
                }
            }
        }
    }

    func rename(_ name: String) {
        withText(name) { stall_span_rename(number, $0, $1) }
    }

    deinit { if isOwner { stall_span_end(number) } }

    func end() { stall_span_end(number) }
}

private func withText<Result>(
    _ text: String, _ body: (UnsafePointer<CChar>?, UInt32) -> Result
) -> Result {
    var text = text
    return text.withUTF8 { bytes in
        body(
            UnsafeRawPointer(bytes.baseAddress)?.assumingMemoryBound(to: CChar.self),
            UInt32(clamping: bytes.count))
    }
}

private struct HeaderInjector: Injector {
    func inject(_ value: String, forKey key: String, into carrier: inout [String: String]) {
        carrier[key.lowercased()] = value
    }
}

/// The ids of trace and span in what a tracer injects, whatever its format; empty if unknown.
private func identifiers(in carrier: [String: String]) -> (trace: String, span: String) {
    func parts(_ key: String, from first: Int, at separator: Character) -> (String, String)? {
        guard let parts = carrier[key]?.split(separator: separator), parts.count > first else {
            return nil
        }
        return (String(parts[first]), parts.count > first + 1 ? String(parts[first + 1]) : "")
    }
    func value(_ words: String...) -> String {
        carrier.first { key, _ in words.contains { key.contains($0) } }?.value ?? ""
    }
    return parts("traceparent", from: 1, at: "-") ?? parts("b3", from: 0, at: "-")
        ?? parts("uber-trace-id", from: 0, at: ":")
        ?? (value("trace-id", "traceid"), value("span-id", "spanid"))
}
#endif
