// The end of a connection, where other tests start processes.

import Foundation

/// Closes the other end of a connection, and returns when this end has seen that.
///
/// A process that another test starts has all descriptors of this one between its fork and its exec: until then nothing is closed by
/// `close`.
package func closePeer(_ peer: CInt, of own: CInt) {
    let readHangUp: Int16 = 0x2000  // POLLRDHUP, which is defined for GNU's sources alone
    // The number may be closed, and be another's, while this waits.
    var own = pollfd(fd: fcntl(own, F_DUPFD_CLOEXEC, 3), events: readHangUp, revents: 0)
    close(peer)
    guard own.fd >= 0 else { return }
    while poll(&own, 1, 30_000) < 0, errno == EINTR {}
    close(own.fd)
}
