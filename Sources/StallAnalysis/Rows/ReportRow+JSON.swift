// A report's line of JSON lines, byte for byte what JSONLines makes of the row, keys in alphabetical order: an encoder
// takes most of a millisecond for the hundreds of frames of a report.

extension ReportRow {
    /// The row as one line with its line end.
    ///
    /// - Parameter quoted: A text as JSON, for texts that need escapes or are not ASCII.
    package func line(quoted: @escaping (String) throws -> String) throws -> [UInt8] {
        var text = JSONText(quoted: quoted)
        try write(to: &text)
        text.syntax("\n")
        return text.bytes
    }
}

extension ReportRow: JSONWritable {
    func write(to text: inout JSONText) throws {
        try write(
            to: &text, images: images, samples: samples, threads: threads, timeline: timeline)
    }

    /// - Parameters: The members that grow with the stacks.
    func write(
        to text: inout JSONText, images: some JSONWritable, samples: some JSONWritable,
        threads: some JSONWritable, timeline: some JSONWritable
    ) throws {
        text.beginObject()
        try text.member("activity", activity)
        try text.member("agent_ms", agentMs)
        try text.member("app", app)
        try text.member("build_id", buildId)
        try text.member("cause", cause)
        try text.member("cpu_ms", cpuMs)
        try text.member("detection_delay_ms", detectionDelayMs)
        try text.member("duration_ms", durationMs)
        try text.member("ending", ending)
        try text.member("family", family)
        try text.member("frames", frames)
        try text.member("host", host)
        try text.member("id", id)
        try text.member("images", images)
        try text.member("loop", loop)
        try text.member("mode", mode)
        try text.member("own_ms", ownMs)
        try text.member("phase", phase)
        try text.member("pid", pid)
        try text.member("revision", revision)
        try text.member("run", run)
        try text.member("samples", samples)
        try text.member("schema", schema)
        try text.member("seq", seq)
        try text.member("signature", signature)
        try text.member("skipped_threads", skippedThreads)
        try text.member("start", start)
        try text.member("state", state)
        try text.member("store", store)
        try text.member("threads", threads)
        try text.member("threshold_ms", thresholdMs)
        try text.member("timeline", timeline)
        try text.member("title", title)
        try text.member("verdict", verdict)
        try text.member("version", version)
        try text.member("wait", wait)
        try text.member("without_app_frame", withoutAppFrame)
        text.endObject()
    }
}

extension CauseRow: JSONWritable {
    func write(to text: inout JSONText) throws {
        text.beginObject()
        try text.member("class", `class`)
        try text.member("confidence", confidence)
        try text.member("evidence", evidence)
        try text.member("lock_holder", lockHolder)
        try text.member("shares", shares)
        text.endObject()
    }
}

extension CauseRow.EvidenceRow: JSONWritable {
    func write(to text: inout JSONText) throws {
        text.beginObject()
        try text.member("name", name)
        try text.member("value", value)
        text.endObject()
    }
}

extension CauseRow.HolderRow: JSONWritable {
    func write(to text: inout JSONText) throws {
        text.beginObject()
        try text.member("deadlock", deadlock)
        try text.member("name", name)
        try text.member("thread", thread)
        text.endObject()
    }
}

extension CauseRow.ShareRow: JSONWritable {
    func write(to text: inout JSONText) throws {
        text.beginObject()
        try text.member("class", `class`)
        try text.member("fraction", fraction)
        text.endObject()
    }
}

extension RunRow: JSONWritable {
    func write(to text: inout JSONText) throws {
        text.beginObject()
        try text.member("boot_id", bootId)
        try text.member("id", id)
        try text.member("start_ticks", startTicks)
        try text.member("started", started)
        text.endObject()
    }
}

extension ImageRow: JSONWritable {
    func write(to text: inout JSONText) throws {
        text.beginObject()
        try text.member("build_id", buildId)
        try text.member("end_address", endAddress)
        try text.member("load_address", loadAddress)
        try text.member("path", path)
        text.endObject()
    }
}

extension PresenceRow: JSONWritable {
    func write(to text: inout JSONText) throws {
        text.beginObject()
        try text.member("from_ms", fromMs)
        try text.member("function", function)
        try text.member("image", image)
        try text.member("share", share)
        try text.member("until_ms", untilMs)
        text.endObject()
    }
}

extension SampleRow: JSONWritable {
    func write(to text: inout JSONText) throws { try write(to: &text, stack: stack) }

    func write(to text: inout JSONText, stack: some JSONWritable) throws {
        text.beginObject()
        try text.member("capture_cost_ms", captureCostMs)
        try text.member("failure", failure)
        try text.member("late", late)
        try text.member("method", method)
        try text.member("offset_ms", offsetMs)
        try text.member("stack", stack)
        try text.member("thread", thread)
        try text.member("truncated", truncated)
        try text.member("weight_ms", weightMs)
        text.endObject()
    }
}

extension FrameRow: JSONWritable {
    func write(to text: inout JSONText) throws {
        text.beginObject()
        try text.member("address", address)
        try text.member("build_id", buildId)
        try text.member("file", file)
        try text.member("function", function)
        try text.member("guessed", guessed)
        try text.member("image", image)
        try text.member("inlined", inlined)
        try text.member("kind", kind)
        try text.member("line", line)
        try text.member("offset", offset)
        try text.member("raw_name", rawName)
        text.endObject()
    }
}

extension ThreadRow: JSONWritable {
    func write(to text: inout JSONText) throws { try write(to: &text, stack: stack) }

    func write(to text: inout JSONText, stack: some JSONWritable) throws {
        text.beginObject()
        try text.member("failure", failure)
        try text.member("id", id)
        try text.member("method", method)
        try text.member("name", name)
        try text.member("role", role)
        try text.member("sample_count", sampleCount)
        try text.member("stack", stack)
        try text.member("truncated", truncated)
        text.endObject()
    }
}
