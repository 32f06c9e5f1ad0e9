package import StallModel

/// How long loops were watched that no ranking separates: those of a name, of a build's processes on a host.
package struct WatchedLoopTime: Hashable, Sendable {
    package var app: String
    package var version: String
    package var host: String
    package var loop: String
    package var watched: Duration

    package init(app: String, version: String, host: String, loop: String, watched: Duration) {
        self.app = app
        self.version = version
        self.host = host
        self.loop = loop
        self.watched = watched
    }

    /// One loop's.
    package init(_ exposure: LoopExposure) {
        let run = exposure.run
        self.init(
            app: run.app, version: run.version, host: run.host, loop: exposure.loop,
            watched: exposure.watched)
    }
}
