import StallRunLoop

@MainActor final class View {
    private var frames = 0
    private var drawing: LoopRegistration?

    /// Draws until the view is gone: then its registration is, and with it the timer.
    func start() {
        drawing = LoopRegistration(
            EventRunLoop.main.schedule(every: .milliseconds(16)) { @MainActor [weak self] _ in
                self?.draw()
            })
    }

    private func draw() {
        frames += 1
        print("frame \(frames)")
        if frames == 3 { EventRunLoop.main.post(close) }
    }

    private func close() {
        view = nil
        EventRunLoop.main.perform(after: .milliseconds(50)) { EventRunLoop.main.stop() }
    }

    deinit { print("the view is gone") }
}

var view: View? = View()
view?.start()
EventRunLoop.main.run()
