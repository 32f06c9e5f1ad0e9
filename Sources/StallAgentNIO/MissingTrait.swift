// The module of an app without the trait NIO: a package's module can be imported whether its trait is on or not, and
// "has no member" would not name what is missing.

#if !NIO
public import StallAgent

extension StallMonitor {
    @available(
        *, unavailable,
        message: "the trait NIO is not on: .package(url: \"...\", from: \"...\", traits: [\"NIO\"])"
    )
    public func watch<Loops>(_ loops: Loops, as name: String, threshold: Duration? = nil) {}

    @available(
        *, unavailable,
        message: "the trait NIO is not on: .package(url: \"...\", from: \"...\", traits: [\"NIO\"])"
    )
    public func watchNIOThreadPool<Pool>(
        _ pool: Pool, as name: String, threshold: Duration? = nil
    ) {}
}
#endif
