// The module of an app without the trait Tracing: an error that names it.

#if !Tracing
@available(
    *, unavailable,
    message:
        "the trait Tracing is not on: .package(url: \"...\", from: \"...\", traits: [\"Tracing\"])"
)
public struct StallTracer<Wrapped> {
    public init(_ wrapped: Wrapped) {}
}
#endif
