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

    private func write(to text: inout JSONText) throws {
        text.syntax("{\"activity\":")
        try text.write(activity)
        text.syntax(",\"agent_ms\":")
        try text.write(agentMs)
        text.syntax(",\"app\":")
        try text.write(app)
        text.syntax(",\"build_id\":")
        try text.write(buildId)
        text.syntax(",\"cause\":")
        if let cause { try cause.write(to: &text) } else { text.syntax("null") }
        text.syntax(",\"cpu_ms\":")
        try text.write(cpuMs)
        text.syntax(",\"detection_delay_ms\":")
        try text.write(detectionDelayMs)
        text.syntax(",\"duration_ms\":")
        try text.write(durationMs)
        text.syntax(",\"ending\":")
        try text.write(ending)
        text.syntax(",\"family\":")
        try text.write(family)
        text.syntax(",\"frames\":")
        try text.write(frames) { try $1.write($0) }
        text.syntax(",\"host\":")
        try text.write(host)
        text.syntax(",\"id\":")
        try text.write(id)
        text.syntax(",\"images\":")
        try text.write(images) { try $0.write(to: &$1) }
        text.syntax(",\"loop\":")
        try text.write(loop)
        text.syntax(",\"mode\":")
        try text.write(mode)
        text.syntax(",\"phase\":")
        try text.write(phase)
        text.syntax(",\"pid\":")
        text.write(pid)
        text.syntax(",\"revision\":")
        text.write(revision)
        text.syntax(",\"run\":")
        try run.write(to: &text)
        text.syntax(",\"samples\":")
        try text.write(samples) { try $0.write(to: &$1) }
        text.syntax(",\"schema\":")
        try text.write(schema)
        text.syntax(",\"seq\":")
        text.write(seq)
        text.syntax(",\"signature\":")
        try text.write(signature)
        text.syntax(",\"skipped_threads\":")
        text.write(skippedThreads)
        text.syntax(",\"start\":")
        try text.write(start)
        text.syntax(",\"state\":")
        try text.write(state)
        text.syntax(",\"store\":")
        try text.write(store)
        text.syntax(",\"threads\":")
        try text.write(threads) { try $0.write(to: &$1) }
        text.syntax(",\"threshold_ms\":")
        try text.write(thresholdMs)
        text.syntax(",\"timeline\":")
        try text.write(timeline) { try $0.write(to: &$1) }
        text.syntax(",\"title\":")
        try text.write(title)
        text.syntax(",\"verdict\":")
        try text.write(verdict)
        text.syntax(",\"version\":")
        try text.write(version)
        text.syntax(",\"wait\":")
        try text.write(wait)
        text.syntax(",\"without_app_frame\":")
        text.write(withoutAppFrame)
        text.syntax("}")
    }
}

extension CauseRow {
    fileprivate func write(to text: inout JSONText) throws {
        text.syntax("{\"class\":")
        try text.write(`class`)
        text.syntax(",\"confidence\":")
        try text.write(confidence)
        text.syntax(",\"evidence\":")
        try text.write(evidence) { row, text in
            text.syntax("{\"name\":")
            try text.write(row.name)
            text.syntax(",\"value\":")
            try text.write(row.value)
            text.syntax("}")
        }
        text.syntax(",\"lock_holder\":")
        if let lockHolder {
            text.syntax("{\"deadlock\":")
            text.write(lockHolder.deadlock)
            text.syntax(",\"name\":")
            try text.write(lockHolder.name)
            text.syntax(",\"thread\":")
            text.write(lockHolder.thread)
            text.syntax("}")
        } else {
            text.syntax("null")
        }
        text.syntax(",\"shares\":")
        try text.write(shares) { row, text in
            text.syntax("{\"class\":")
            try text.write(row.class)
            text.syntax(",\"fraction\":")
            try text.write(row.fraction)
            text.syntax("}")
        }
        text.syntax("}")
    }
}

extension RunRow {
    fileprivate func write(to text: inout JSONText) throws {
        text.syntax("{\"boot_id\":")
        try text.write(bootId)
        text.syntax(",\"id\":")
        try text.write(id)
        text.syntax(",\"start_ticks\":")
        text.write(startTicks)
        text.syntax(",\"started\":")
        try text.write(started)
        text.syntax("}")
    }
}

extension ImageRow {
    fileprivate func write(to text: inout JSONText) throws {
        text.syntax("{\"build_id\":")
        try text.write(buildId)
        text.syntax(",\"end_address\":")
        try text.write(endAddress)
        text.syntax(",\"load_address\":")
        try text.write(loadAddress)
        text.syntax(",\"path\":")
        try text.write(path)
        text.syntax("}")
    }
}

extension PresenceRow {
    fileprivate func write(to text: inout JSONText) throws {
        text.syntax("{\"from_ms\":")
        try text.write(fromMs)
        text.syntax(",\"function\":")
        try text.write(function)
        text.syntax(",\"image\":")
        try text.write(image)
        text.syntax(",\"share\":")
        try text.write(share)
        text.syntax(",\"until_ms\":")
        try text.write(untilMs)
        text.syntax("}")
    }
}

extension SampleRow {
    fileprivate func write(to text: inout JSONText) throws {
        text.syntax("{\"capture_cost_ms\":")
        try text.write(captureCostMs)
        text.syntax(",\"failure\":")
        try text.write(failure)
        text.syntax(",\"late\":")
        text.write(late)
        text.syntax(",\"method\":")
        try text.write(method)
        text.syntax(",\"offset_ms\":")
        try text.write(offsetMs)
        text.syntax(",\"stack\":")
        try text.write(stack) { try $0.write(to: &$1) }
        text.syntax(",\"thread\":")
        text.write(thread)
        text.syntax(",\"truncated\":")
        text.write(truncated)
        text.syntax(",\"weight_ms\":")
        try text.write(weightMs)
        text.syntax("}")
    }
}

extension FrameRow {
    fileprivate func write(to text: inout JSONText) throws {
        text.syntax("{\"address\":")
        try text.write(address)
        text.syntax(",\"build_id\":")
        try text.write(buildId)
        text.syntax(",\"file\":")
        try text.write(file)
        text.syntax(",\"function\":")
        try text.write(function)
        text.syntax(",\"guessed\":")
        text.write(guessed)
        text.syntax(",\"image\":")
        try text.write(image)
        text.syntax(",\"inlined\":")
        text.write(inlined)
        text.syntax(",\"kind\":")
        try text.write(kind)
        text.syntax(",\"line\":")
        text.write(line)
        text.syntax(",\"offset\":")
        try text.write(offset)
        text.syntax(",\"raw_name\":")
        try text.write(rawName)
        text.syntax("}")
    }
}

extension ThreadRow {
    fileprivate func write(to text: inout JSONText) throws {
        text.syntax("{\"failure\":")
        try text.write(failure)
        text.syntax(",\"id\":")
        text.write(id)
        text.syntax(",\"method\":")
        try text.write(method)
        text.syntax(",\"name\":")
        try text.write(name)
        text.syntax(",\"role\":")
        try text.write(role)
        text.syntax(",\"sample_count\":")
        text.write(sampleCount)
        text.syntax(",\"stack\":")
        try text.write(stack) { try $0.write(to: &$1) }
        text.syntax(",\"truncated\":")
        text.write(truncated)
        text.syntax("}")
    }
}
