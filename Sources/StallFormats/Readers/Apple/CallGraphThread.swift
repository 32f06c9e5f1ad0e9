// The threads of printed call trees as those of a report. Their binaries are known only behind all trees.

internal import StallModel

/// A thread of a printed call tree.
struct CallGraphThread {
    var number: Int32
    var name: String?
    var queue: String?
    var calls = SampledTreeCursor()

    var isMain: Bool { queue == "com.apple.main-thread" || name == "Main Thread" }
}

extension ForeignReport {
    /// Fills in the threads of a report, and its main thread: the first where none is marked.
    mutating func take(_ threads: [CallGraphThread], _ images: [Image]) {
        self.images = images
        let sorted = SortedImages(images)
        let main = threads.firstIndex { $0.isMain } ?? threads.indices.first
        var room = SampledTree.reportFrameLimit
        self.threads = threads.enumerated().map { index, thread in
            ForeignThread(
                number: thread.number, name: thread.name ?? thread.queue, isMain: index == main,
                samples: thread.calls.tree.samples(in: sorted, room: &room))
        }
        // Calls that have the name of their binary but no address.
        let known = Dictionary(images.map { ($0.name, $0) }) { first, _ in first }
        for thread in self.threads.indices {
            for sample in self.threads[thread].samples.indices {
                for frame in self.threads[thread].samples[sample].frames.indices {
                    self.threads[thread].samples[sample].frames[frame].complete(from: known)
                }
            }
        }
    }
}

extension ForeignFrame {
    fileprivate mutating func complete(from images: [String: Image]) {
        guard buildID == nil, let name = image, let found = images[name] else { return }
        image = found.path
        buildID = found.buildID
    }
}
