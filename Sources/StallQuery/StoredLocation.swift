// A location of a store, with what the store knows of it.

package import StallModel

/// A location in an image with a build ID, and how much is known of it.
package struct StoredLocation: Hashable, Sendable {
    package var location: CodeLocation
    /// The functions there, innermost first; one frame without a function if that is not known.
    package var frames: [Frame]

    package init(location: CodeLocation, frames: [Frame]) {
        self.location = location
        self.frames = frames
    }
}
