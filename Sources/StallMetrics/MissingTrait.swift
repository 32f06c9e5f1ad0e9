// The module of an app without the trait Metrics: an error that names it.

#if !Metrics
public import StallAgent

extension StallMonitor {
    @available(
        *, unavailable,
        message:
            "the trait Metrics is not on: .package(url: \"...\", from: \"...\", traits: [\"Metrics\"])"
    )
    public func reportsMetrics(every interval: Duration = .seconds(10)) {}
}
#endif
