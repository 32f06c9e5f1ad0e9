// The limits of one sender, and of all together.

/// Limits; docs/fleet.md lists them with their defaults.
package struct CollectorLimits: Sendable {
    /// The body of a push as sent.
    package var bodyBytes = 16 << 20
    /// The same, unpacked.
    package var inflatedBytes = 64 << 20
    /// Bodies that are read or wait to be written, all together: as sent, and unpacked.
    package var heldBytes = 256 << 20
    /// Requests of one token: how many per second, and how many at once after a pause.
    package var requestRate = 200.0
    package var requestBurst = 400.0
    /// Requests without a valid token, of one address.
    var failureRate = 1.0
    var failureBurst = 20.0
    /// Questions of readers that are answered at the same time.
    package var readers = 4
    package var connections = 512
    /// The time that a connection may take for a whole request.
    package var requestSeconds = 60

    package init() {}
}
