// A store's content, row by row, in transfer between stores: reports, and the rows that rates and losses are computed
// from.
//
// Each row contains its key and its source: rows may come in any order, twice, and without the others. Counts
// and watched time only grow, so that of two states of one row the greater stands.

package import StallModel

/// A row of a store in transfer.
package enum PortableRow: Hashable, Sendable {
    case report(PortableReport)
    case exposure(PortableExposure)
    case suppression(PortableSuppression)
    case loss(PortableLoss)
    case run(PortableRun)
    case location(PortableLocation)
    case watchedLoop(PortableLoop)
    /// A kind of row, or a version of one, that this program does not know.
    case unknown(schema: String)

    /// The store that it was first written to; nil where the row does not say.
    package var store: UniqueID? {
        switch self {
        case .report(let row): row.origin?.store
        case .exposure(let row): row.store
        case .suppression(let row): row.store
        case .loss(let row): row.store
        case .run(let row): row.store
        case .location(let row): row.store
        case .watchedLoop(let row): row.store
        case .unknown: nil
        }
    }
}

/// A stretch of a loop's watched time: one of its store, revision and loop.
package struct PortableExposure: Hashable, Sendable {
    package var store: UniqueID
    package var revision: Int64
    package var exposure: LoopExposure

    package init(store: UniqueID, revision: Int64, exposure: LoopExposure) {
        self.store = store
        self.revision = revision
        self.exposure = exposure
    }
}

/// Stalls without a report: one of its store, loop, location and reason.
package struct PortableSuppression: Hashable, Sendable {
    package var store: UniqueID
    package var revision: Int64
    package var threshold: Duration
    package var stalls: SuppressedStalls

    package init(
        store: UniqueID, revision: Int64, threshold: Duration, stalls: SuppressedStalls
    ) {
        self.store = store
        self.revision = revision
        self.threshold = threshold
        self.stalls = stalls
    }
}

/// How many stalls a process lost for a reason: one of its store, run and reason.
package struct PortableLoss: Hashable, Sendable {
    package var store: UniqueID
    package var revision: Int64
    package var run: ProcessRun
    package var reason: LossReason
    package var count: Int64

    package init(
        store: UniqueID, revision: Int64, run: ProcessRun, reason: LossReason, count: Int64
    ) {
        self.store = store
        self.revision = revision
        self.run = run
        self.reason = reason
        self.count = count
    }
}

/// A process run with all images that its loader had placed, also those that no report shows.
package struct PortableRun: Hashable, Sendable {
    package var store: UniqueID?
    package var run: ProcessRun
    package var images: [PlacedImage]

    package init(store: UniqueID?, run: ProcessRun, images: [PlacedImage]) {
        self.store = store
        self.run = run
        self.images = images
    }
}

/// An image at its load address; of some, the path is not known.
package struct PlacedImage: Hashable, Sendable {
    package var path: String?
    package var buildID: BuildID?
    package var loadAddress: UInt64
    package var endAddress: UInt64

    package init(path: String?, buildID: BuildID?, loadAddress: UInt64, endAddress: UInt64) {
        self.path = path
        self.buildID = buildID
        self.loadAddress = loadAddress
        self.endAddress = endAddress
    }
}

/// A location in a binary and what is known of it: no symbol, functions, or functions with their lines.
package struct PortableLocation: Hashable, Sendable {
    /// The store whose agent named it.
    package var store: UniqueID
    package var revision: Int64
    /// The run whose image it is in, where the image has no build ID: another run's may be another program.
    package var run: ProcessRun?
    package var location: CodeLocation
    /// Inlined functions first; one without names where no symbol was found.
    package var frames: [Frame]

    package init(
        store: UniqueID, revision: Int64, run: ProcessRun?, location: CodeLocation, frames: [Frame]
    ) {
        self.store = store
        self.revision = revision
        self.run = run
        self.location = location
        self.frames = frames
    }
}

/// A loop whose watched time was recorded, of which no stretch may be left.
package struct PortableLoop: Hashable, Sendable {
    package var store: UniqueID
    package var run: ProcessRun
    package var loop: String
    package var threshold: Duration

    package init(store: UniqueID, run: ProcessRun, loop: String, threshold: Duration) {
        self.store = store
        self.run = run
        self.loop = loop
        self.threshold = threshold
    }
}
