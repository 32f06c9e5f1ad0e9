// What a frame is to whoever reads a report. Decided by whose code it is (the module in the symbol, then the image) and
// by tables of names; the tables are in FrameTables.swift.

package import StallModel

/// What a frame says about a stall.
package enum FrameClass: Hashable, Sendable {
    /// The app's own code: what a group is named after.
    case app
    /// Where a thread waits: for a lock, for time, for a file or a peer.
    case wait
    /// What runs everything: run loops, queues, the beginnings of threads.
    case base
    /// Adapts calling conventions.
    case thunk
    /// The language runtime.
    case runtime
    /// Memory: allocation, copying.
    case allocator
    /// The agent itself, when it is on the stack it looks at.
    case monitor
    /// Libraries that come with the system or the toolchain.
    case system
    case kernel
}

/// A frame with what grouping needs to know of it.
package struct ClassifiedFrame: Hashable, Sendable {
    package let frame: Frame
    package let key: SymbolKey
    package let frameClass: FrameClass
    /// The rule that decided, in words: what `stallctl why` shows.
    package let rule: String
    /// For a wait, what for.
    package let wait: WaitClass?
    /// Runs callouts: what is below it on the stack did not choose what is above.
    package let isLoop: Bool
    /// The program's entry point: what a stall is named after when its code is written right there.
    package let isEntryPoint: Bool
    /// Tells functions of one name apart: the Swift module, or the image where there is none.
    package let owner: String

    /// - Parameter executable: The build ID of the program, whose code is the app's wherever it is installed.
    package init(_ frame: Frame, executable: BuildID? = nil) {
        let key = SymbolKey(frame: frame)
        let module = frame.rawName.flatMap(mangledModule)
        let verdict = Verdict(frame, key: key, module: module, executable: executable)
        self.frame = frame
        self.key = key
        frameClass = verdict.frameClass
        rule = verdict.rule
        wait = verdict.wait
        isLoop = verdict.isLoop
        isEntryPoint = verdict.isEntryPoint
        owner = module ?? frame.imageName ?? ""
    }
}

private struct Verdict {
    var frameClass: FrameClass
    var rule: String
    var wait: WaitClass?
    var isLoop = false
    var isEntryPoint = false

    init(
        _ frameClass: FrameClass, _ rule: String, wait: WaitClass? = nil, isLoop: Bool = false,
        isEntryPoint: Bool = false
    ) {
        self.frameClass = frameClass
        self.rule = rule
        self.wait = wait
        self.isLoop = isLoop
        self.isEntryPoint = isEntryPoint
    }

    /// The first rule that matches decides.
    init(_ frame: Frame, key: SymbolKey, module: String?, executable: BuildID?) {
        let image = frame.imageName ?? ""
        if image.hasPrefix("[") {
            self = Verdict(.kernel, "image \(image)")
        } else if key.role == .thunk {
            self = Verdict(.thunk, "adapts calling conventions")
        } else if key.role == .runtime {
            self = Verdict(.runtime, "made by the compiler or part of the language runtime")
        } else if let module {
            self = Verdict(module: module, key: key)
        } else if FrameTables.isEntryPoint(key.text, image: image) {
            self = Verdict(.base, "begins the program", isEntryPoint: true)
        } else if let name = frame.function, let verdict = Verdict(nameInC: key.text, whole: name) {
            self = verdict
        } else if frame.imagePath == nil {
            self = Verdict(.system, "in no known image")
        } else if let executable, frame.buildID == executable {
            self = Verdict(.app, "in the program")
        } else if FrameTables.isSystemImage(frame.imagePath ?? "") {
            self = Verdict(.system, "image \(image)")
        } else {
            self = Verdict(.app, "image \(image)")
        }
    }

    private init(module: String, key: SymbolKey) {
        if module == "StallRunLoop" {
            self = Verdict(
                .base, "module \(module)", isLoop: key.text.hasPrefix("EventRunLoop.run"))
        } else if FrameTables.agentModules.contains(module) {
            self = Verdict(.monitor, "module \(module)")
        } else if FrameTables.systemModules.contains(module) {
            let isLoop = module == "Foundation" && key.text.hasPrefix("RunLoop.run")
            self = Verdict(isLoop ? .base : .system, "module \(module)", isLoop: isLoop)
        } else {
            self = Verdict(.app, "module \(module)")
        }
    }

    private init?(nameInC name: String, whole: String) {
        let plain = FrameTables.plainName(name)
        if let wait = FrameTables.waits[plain] {
            self = Verdict(.wait, "waits: \(wait.rawValue)", wait: wait)
        } else if FrameTables.bases.contains(name) || FrameTables.bases.contains(plain) {
            self = Verdict(.base, "begins a thread or the program")
        } else if FrameTables.loops.contains(where: { plain.hasPrefix($0) }) {
            self = Verdict(.base, "runs callouts", isLoop: true)
        } else if FrameTables.dispatchPrefixes.contains(where: { name.hasPrefix($0) }) {
            self = Verdict(.base, "libdispatch or CoreFoundation")
        } else if FrameTables.allocators.contains(plain)
            || FrameTables.allocatorPrefixes.contains(where: { name.hasPrefix($0) })
        {
            self = Verdict(.allocator, "allocates or copies memory")
        } else if FrameTables.runtimePrefixes.contains(where: { name.hasPrefix($0) }) {
            self = Verdict(.runtime, "the language runtime")
        } else if FrameTables.systemPrefixes.contains(where: { name.hasPrefix($0) })
            || FrameTables.systemTypes.contains(where: { whole.contains($0) })
        {
            self = Verdict(.system, "a library of the toolchain")
        } else {
            return nil
        }
    }
}
