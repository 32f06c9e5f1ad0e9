// The results of symbolication, per image.

package import StallModel
import StallQuery
package import StallSymbols

/// The images of a store's locations, and how much is known of each now.
package struct SymbolicationResult {
    package struct ImageResult {
        package let image: Image
        /// The files with its build ID, in the order in which they are searched.
        package let files: [SymbolFile]
        package fileprivate(set) var locationCount = 0
        package fileprivate(set) var namedCount = 0
        package fileprivate(set) var lineCount = 0
        package fileprivate(set) var changedCount = 0

        init(image: Image, files: [SymbolFile]) {
            self.image = image
            self.files = files
        }
    }

    package private(set) var images: [ImageResult]
    /// How many locations are in images without a build ID, which are never symbolicated from a file.
    package let withoutBuildID: Int
    package let refusals: [SymbolFileError]
    private let indexes: [Key: Int]

    init(images: [ImageResult], withoutBuildID: Int, refusals: [SymbolFileError]) {
        self.images = images
        self.withoutBuildID = withoutBuildID
        self.refusals = refusals
        let keys = images.enumerated().map { (Key($1.image.path, $1.image.buildID), $0) }
        indexes = Dictionary(keys) { first, _ in first }
    }

    /// The sum of a count over all images.
    package func sum(_ count: KeyPath<ImageResult, Int>) -> Int {
        images.reduce(0) { $0 + $1[keyPath: count] }
    }

    mutating func count(_ stored: StoredLocation, isChanged: Bool) {
        guard let index = indexes[Key(stored.location.imagePath, stored.location.buildID)] else {
            return  // added by an agent meanwhile
        }
        images[index].locationCount += 1
        if stored.frames.contains(where: { $0.function != nil }) { images[index].namedCount += 1 }
        if stored.frames.contains(where: { $0.line != nil }) { images[index].lineCount += 1 }
        if isChanged { images[index].changedCount += 1 }
    }

    private struct Key: Hashable {
        var path: String?
        var buildID: BuildID?

        init(_ path: String?, _ buildID: BuildID?) { (self.path, self.buildID) = (path, buildID) }
    }
}
