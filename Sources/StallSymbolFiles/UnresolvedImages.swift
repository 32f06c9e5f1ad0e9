// The images that symbols are wanted for.

internal import StallModel

/// The images with locations to resolve that have a build ID, without duplicates.
struct UnresolvedImages {
    let images: [Image]

    init(_ locations: [CodeLocation]) {
        var seen: Set<Image> = []
        images = locations.compactMap { location in
            guard let path = location.imagePath, let buildID = location.buildID else { return nil }
            // The load address is irrelevant: locations are offsets.
            let image = Image(path: path, buildID: buildID, loadAddress: 0, endAddress: .max)
            return seen.insert(image).inserted ? image : nil
        }
    }

    func has(_ buildID: BuildID) -> Bool { images.contains { $0.buildID == buildID } }

    /// The build IDs of the images with this file's name.
    func buildIDs(ofImagesNamed file: String) -> [BuildID] {
        let name = file.hasSuffix(".debug") ? String(file.dropLast(6)) : file
        return images.filter { $0.name == name }.compactMap(\.buildID)
    }
}
