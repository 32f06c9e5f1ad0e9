/// Images, for look-ups by address.
package struct SortedImages: Sendable {
    private let images: [Image]

    package init(_ images: [Image]) {
        self.images = sortedPlaces(images.count) {
            images[$0].loadAddress < images[$1].loadAddress
        }.map { images[$0] }
    }

    /// The image whose mapping contains an address.
    package func image(at address: UInt64) -> Image? {
        var (low, high) = (0, images.count)
        while low < high {
            let middle = (low + high) / 2
            if images[middle].loadAddress <= address { low = middle + 1 } else { high = middle }
        }
        guard low > 0, address < images[low - 1].endAddress else { return nil }
        return images[low - 1]
    }
}
