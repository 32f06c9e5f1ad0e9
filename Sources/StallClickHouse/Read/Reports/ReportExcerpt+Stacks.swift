// The content of stacks: locations, their names, and the binaries that contain them. Each query selects its rows by a
// subquery of its own, so that those for a part of the stacks are sent at once.

internal import StallModel
internal import StallStore

extension ReportExcerpt {
    /// The questions for what is on some stacks.
    private struct StackQuestions {
        let stacks, locations, functions, images: ClickHouseQuery
        var all: [ClickHouseQuery] { [stacks, locations, functions, images] }

        init(_ hashes: [Int64]) {
            let ofStacks: ClickHouseQuery = "hash in \(list: hashes)"
            let ofPlaces: ClickHouseQuery =
                "hash in (select arrayJoin(location) from stack where \(ofStacks))"
            stacks = """
                select distinct hash, location, is_guessed, is_truncated from stack where \(ofStacks)
                """
            locations = """
                select hash, image, offset, kind, detail, frame_function, frame_line, frame_is_inlined
                from location final where \(ofPlaces)
                """
            functions = """
                select distinct hash, name, raw_name, file from `function`
                where hash in (select arrayJoin(frame_function) from location where \(ofPlaces))
                """
            images = """
                select distinct hash, path, build_id from image
                where hash in (select image from location where \(ofPlaces))
                """
        }
    }

    private func missingStacks(_ hashes: Set<Int64>) -> [[Int64]] {
        hashes.subtracting(wholeStacks).sorted().parts()
    }

    func questions(ofStacks hashes: Set<Int64>) -> [ClickHouseQuery] {
        missingStacks(hashes).flatMap { StackQuestions($0).all }
    }

    /// Fetches stacks by the numbers of their rows.
    func fetchStacks(numbers: some Sequence<Int64>) throws {
        let hashes = Set(numbers.compactMap { stacks.key(of: $0) })
        try excerpt.fill { try fetchStacks(hashes) }
    }

    /// Fetches stacks by their hashes, with all that is on them.
    func fetchStacks(_ hashes: Set<Int64>, isAskedAhead: Bool = false) throws {
        let add = try excerpt.connection.prepare(
            "insert or ignore into stack (id, hash, is_truncated, locations) values (?, ?, ?, ?)")
        for part in missingStacks(hashes) {
            let questions = StackQuestions(part)
            if !isAskedAhead { server.ask(ahead: questions.all, keepingOthers: true) }
            try fetchImages(questions.images)
            try fetchFunctions(questions.functions)
            try fetchLocations(questions.locations)
            var rows = try server.rows(questions.stacks, columnCount: 4)
            while try rows.step() {
                let hash: Int64 = try rows.integer()
                let (places, guesses) = (try rows.integers(), try rows.integers())
                guard places.count == guesses.count else {
                    throw rows.bad("as many guesses as places")
                }
                let entries = try zip(places, guesses).map { place, isGuessed in
                    guard let number = locations[place] else {
                        throw ClickHouseError.badAnswer(
                            store: server.name, detail: "a stack has a place that is missing")
                    }
                    return StackEntry(location: number, isGuessed: isGuessed != 0)
                }
                try add.run(stacks.number(of: hash).0, hash, rows.integer(), entries.encoded)
            }
            wholeStacks.formUnion(part)
        }
    }

    private func fetchLocations(_ question: ClickHouseQuery) throws {
        let add = try excerpt.connection.prepare(
            "insert into location (id, hash, image, offset, kind, detail) values (?, ?, ?, ?, ?, ?)"
        )
        let addFrame = try excerpt.connection.prepare(
            """
            insert into location_frame (location, position, function, line, is_inlined)
            values (?, ?, ?, ?, ?)
            """)
        var rows = try server.rows(question, columnCount: 8)
        while try rows.step() {
            let hash: Int64 = try rows.integer()
            let (id, isNew) = locations.number(of: hash)
            guard isNew else {
                rows.skipRest()
                continue
            }
            try add.run(
                id, hash, images.number(of: rows.integer()).0, rows.integer(), rows.integer(),
                rows.integer())
            let (names, lines) = (try rows.integers(), try rows.integers())
            let areInlined = try rows.integers()
            guard names.count == lines.count, names.count == areInlined.count else {
                throw rows.bad(6, "as many lines as functions")
            }
            for index in names.indices {
                try addFrame.run(
                    id, Int64(index), functions[names[index]],
                    lines[index] < 0 ? nil : lines[index], areInlined[index])
            }
        }
    }

    private func fetchFunctions(_ question: ClickHouseQuery) throws {
        let add = try excerpt.connection.prepare(
            "insert into function (id, hash, name, raw_name, file) values (?, ?, ?, ?, ?)")
        var rows = try server.rows(question, columnCount: 4)
        while try rows.step() {
            let hash: Int64 = try rows.integer()
            let (id, isNew) = functions.number(of: hash)
            guard isNew else {
                rows.skipRest()
                continue
            }
            try add.run(id, hash, rows.optionalText(), rows.optionalText(), rows.optionalText())
        }
    }

    private func fetchImages(_ question: ClickHouseQuery) throws {
        let add = try excerpt.connection.prepare(
            "insert or ignore into image (id, hash, path, build_id) values (?, ?, ?, ?)")
        var rows = try server.rows(question, columnCount: 3)
        while try rows.step() {
            let hash: Int64 = try rows.integer()
            try add.run(
                images.number(of: hash).0, hash, rows.optionalText(), rows.optionalBytes())
        }
    }

    // MARK: Images of processes

    /// The questions for where the loaders of processes had put their images.
    private struct LoadQuestions {
        let loads, images: ClickHouseQuery
        var all: [ClickHouseQuery] { [loads, images] }

        /// - Parameter condition: On the run.
        init(where condition: ClickHouseQuery) {
            loads = """
                select run, image, load_address, end_address from image_load where \(condition)
                """
            images = """
                select distinct hash, path, build_id from image
                where hash in (select image from image_load where \(condition))
                """
        }

        init(ofLoops loops: [Int64]) {
            self.init(where: "run in (select run from loop where hash in \(list: loops))")
        }
    }

    private func loopsWithoutImages(_ loops: Set<Int64>) -> [[Int64]] {
        loops.subtracting(loopsWithImages).sorted().parts()
    }

    func questions(ofImagesOfLoops loops: Set<Int64>) -> [ClickHouseQuery] {
        loopsWithoutImages(loops).flatMap { LoadQuestions(ofLoops: $0).all }
    }

    /// Fetches the images of the processes of loops.
    func fetchImages(ofLoops loops: Set<Int64>) throws {
        for part in loopsWithoutImages(loops) {
            try fetchLoads(LoadQuestions(ofLoops: part))
            loopsWithImages.formUnion(part)
        }
    }

    /// Fetches the images of a process.
    func fetchImages(ofRun run: UniqueID) throws {
        try fetchLoads(LoadQuestions(where: "run = \(run)"))
    }

    private func fetchLoads(_ questions: LoadQuestions) throws {
        let add = try excerpt.connection.prepare(
            """
            insert or replace into image_load (run, image, load_address, end_address)
            values (?, ?, ?, ?)
            """)
        try fetchImages(questions.images)
        var rows = try server.rows(questions.loads, columnCount: 4)
        while try rows.step() {
            let (run, image): (UniqueID, Int64) = (try rows.uniqueID(), try rows.integer())
            let (start, end): (Int64, Int64) = (try rows.integer(), try rows.integer())
            guard let run = excerpt.runs[run], let image = images[image] else { continue }
            try add.run(run, image, start, end)
        }
    }
}
