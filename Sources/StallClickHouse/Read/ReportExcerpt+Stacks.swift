// What is on stacks: places, their names, and the binaries that they are in.

internal import StallModel
internal import StallStore

extension ReportExcerpt {
    /// Fetches stacks by the numbers of their rows.
    func fetchStacks(numbers: some Sequence<Int64>) throws {
        let hashes = Set(numbers.compactMap { stacks.key(of: $0) })
        try excerpt.fill { try fetchStacks(hashes) }
    }

    /// Fetches stacks by their hashes, with all that is on them.
    func fetchStacks(_ hashes: Set<Int64>) throws {
        let missing = hashes.subtracting(wholeStacks).sorted()
        guard !missing.isEmpty else { return }
        let add = try excerpt.connection.prepare(
            "insert or ignore into stack (id, hash, is_truncated, locations) values (?, ?, ?, ?)")
        for part in missing.parts() {
            var found: [(hash: Int64, isTruncated: Int64, locations: [Int64], guesses: [Int64])] =
                []
            var rows = try server.rows(
                """
                select distinct hash, is_truncated, location, is_guessed from stack
                where hash in \(list: part)
                """, columnCount: 4)
            while try rows.step() {
                let (locations, guesses) = (try rows.integers(at: 2), try rows.integers(at: 3))
                guard locations.count == guesses.count else {
                    throw rows.bad(3, "as many guesses as places")
                }
                found.append((try rows.integer(at: 0), try rows.integer(at: 1), locations, guesses))
            }
            try fetchLocations(Set(found.flatMap(\.locations)))
            for stack in found {
                let entries = try zip(stack.locations, stack.guesses).map { location, isGuessed in
                    guard let number = locations[location] else {
                        throw ClickHouseError.badAnswer(
                            store: server.name, detail: "a stack has a place that is missing")
                    }
                    return StackEntry(location: number, isGuessed: isGuessed != 0)
                }
                try add.run(
                    stacks.number(of: stack.hash).0, stack.hash, stack.isTruncated, entries.encoded)
            }
            wholeStacks.formUnion(part)
        }
    }

    private func fetchLocations(_ hashes: Set<Int64>) throws {
        struct Place {
            var hash, image, offset, kind, detail: Int64
            var functions, lines, areInlined: [Int64]
        }
        let add = try excerpt.connection.prepare(
            "insert into location (id, hash, image, offset, kind, detail) values (?, ?, ?, ?, ?, ?)"
        )
        let addFrame = try excerpt.connection.prepare(
            """
            insert into location_frame (location, position, function, line, is_inlined)
            values (?, ?, ?, ?, ?)
            """)
        for part in hashes.filter({ !locations.contains($0) }).sorted().parts() {
            var places: [Place] = []
            var rows = try server.rows(
                """
                select hash, image, offset, kind, detail, frame_function, frame_line, frame_is_inlined
                from location final where hash in \(list: part)
                """, columnCount: 8)
            while try rows.step() {
                let place = Place(
                    hash: try rows.integer(at: 0), image: try rows.integer(at: 1),
                    offset: try rows.integer(at: 2), kind: try rows.integer(at: 3),
                    detail: try rows.integer(at: 4), functions: try rows.integers(at: 5),
                    lines: try rows.integers(at: 6), areInlined: try rows.integers(at: 7))
                guard place.functions.count == place.lines.count,
                    place.functions.count == place.areInlined.count
                else { throw rows.bad(6, "as many lines as functions") }
                places.append(place)
            }
            try fetchImages(Set(places.map(\.image)))
            try fetchFunctions(Set(places.flatMap(\.functions)))
            for place in places {
                let (id, isNew) = locations.number(of: place.hash)
                guard isNew else { continue }
                try add.run(
                    id, place.hash, images.number(of: place.image).0, place.offset, place.kind,
                    place.detail)
                for index in place.functions.indices {
                    let (function, line) = (place.functions[index], place.lines[index])
                    try addFrame.run(
                        id, Int64(index), functions[function], line < 0 ? nil : line,
                        place.areInlined[index])
                }
            }
        }
    }

    private func fetchFunctions(_ hashes: Set<Int64>) throws {
        let add = try excerpt.connection.prepare(
            "insert into function (id, hash, name, raw_name, file) values (?, ?, ?, ?, ?)")
        for part in hashes.filter({ $0 != 0 && !functions.contains($0) }).sorted().parts() {
            var rows = try server.rows(
                "select hash, name, raw_name, file from `function` where hash in \(list: part)",
                columnCount: 4)
            while try rows.step() {
                let (id, isNew) = functions.number(of: try rows.integer(at: 0))
                guard isNew else { continue }
                try add.run(
                    id, rows.integer(at: 0), rows.optionalText(at: 1), rows.optionalText(at: 2),
                    rows.optionalText(at: 3))
            }
        }
    }

    private func fetchImages(_ hashes: Set<Int64>) throws {
        let add = try excerpt.connection.prepare(
            "insert into image (id, hash, path, build_id) values (?, ?, ?, ?)")
        for part in hashes.filter({ !images.contains($0) }).sorted().parts() {
            var rows = try server.rows(
                "select hash, path, build_id from image where hash in \(list: part)", columnCount: 3
            )
            while try rows.step() {
                let (id, isNew) = images.number(of: try rows.integer(at: 0))
                guard isNew else { continue }
                try add.run(
                    id, rows.integer(at: 0), rows.optionalText(at: 1), rows.optionalBytes(at: 2))
            }
        }
    }

    /// Fetches where the loaders of processes had put their images.
    func fetchImages(ofRuns runs: Set<UniqueID>) throws {
        let missing = runs.subtracting(runsWithImages)
        let add = try excerpt.connection.prepare(
            """
            insert or replace into image_load (run, image, load_address, end_address)
            values (?, ?, ?, ?)
            """)
        for part in Array(missing).parts(of: 1000) {
            var loads: [(run: UniqueID, image: Int64, first: Int64, end: Int64)] = []
            var rows = try server.rows(
                """
                select run, image, load_address, end_address from image_load
                where run in \(list: part.map(\.bytes))
                """, columnCount: 4)
            while try rows.step() {
                loads.append(
                    (
                        try rows.uniqueID(at: 0), try rows.integer(at: 1), try rows.integer(at: 2),
                        try rows.integer(at: 3)
                    ))
            }
            try fetchImages(Set(loads.map(\.image)))
            for load in loads {
                guard let run = excerpt.runs[load.run], let image = images[load.image] else {
                    continue
                }
                try add.run(run, image, load.first, load.end)
            }
            runsWithImages.formUnion(part)
        }
    }
}
