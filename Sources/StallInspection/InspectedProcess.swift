// One process at one instant: its images, its threads and their stacks.

internal import CInspection
internal import CStackCapture
internal import Glibc
package import StallModel

/// Why a thread has no stack.
package enum InspectionError: Error, Equatable, Sendable, CustomStringConvertible {
    case ended
    case notPermitted
    /// It ran and was blocked in turns.
    case restless
    case system(errno: CInt)

    package var description: String {
        switch self {
        case .ended: "it has ended"
        case .notPermitted: "the kernel does not permit to read it (ptrace)"
        case .restless: "it ran and waited in turns"
        case .system(let errno): String(cString: strerror(errno))
        }
    }
}

/// A thread's position.
package struct InspectedThread: Sendable {
    package var id: ThreadID
    package var name: String
    /// The letter of proc(5).
    package var state: UInt8
    package var isRunning = false
    package var systemCall: Int32?
    package var arguments: [UInt64] = []
    /// The kernel function that it sleeps in.
    package var waitChannel = ""
    package var stack: CapturedStack?
    package var failure: InspectionError?
    /// The words of its stack, innermost first.
    package var words: [UInt64] = []
    package var stackPointer: UInt64 = 0
}

package final class InspectedProcess {
    package let id: Int32
    package let memory: RemoteMemory
    /// In ascending order.
    package let images: [Image]
    let map: MemoryMap
    private let remoteImages: [RemoteImage]
    private let unwindImages: UnsafeMutableBufferPointer<stall_unwind_image>
    private let inspector: OpaquePointer?

    package init(_ id: Int32) {
        self.id = id
        memory = RemoteMemory(process: id)
        map = MemoryMap(process: id)
        remoteImages = RemoteImage.all(map, memory)
        images = remoteImages.map(\.image)
        unwindImages = .allocate(capacity: remoteImages.count)
        for (index, image) in remoteImages.enumerated() {
            unwindImages.initializeElement(
                at: index,
                to: stall_unwind_image(
                    start: image.image.loadAddress, end: image.image.endAddress,
                    eh_frame_header: image.frameHeader))
        }
        let names = [
            "swift_job_run", "swift_job_run_on_task_executor",
            "swift_job_run_on_serial_and_task_executor", "swift_task_switch",
        ]
        let found = Self.addresses(of: names, in: remoteImages)
        var runtime = stall_swift_runtime(
            job_run: found[names[0]] ?? 0, job_run_on_task_executor: found[names[1]] ?? 0,
            job_run_on_serial_and_task_executor: found[names[2]] ?? 0,
            task_switch: found[names[3]] ?? 0)
        inspector = stall_inspector_create(
            id, unwindImages.baseAddress, UInt32(unwindImages.count), &runtime)
    }

    deinit {
        if let inspector { stall_inspector_destroy(inspector) }
        unwindImages.deallocate()
    }

    /// The addresses of exported symbols of any image.
    func addresses(of names: [String]) -> [String: UInt64] {
        Self.addresses(of: names, in: remoteImages)
    }

    /// Of the first image that has one of them.
    private static func addresses(of names: [String], in images: [RemoteImage]) -> [String: UInt64]
    {
        // The runtime's library, unless the program contains it.
        let ordered = images.filter { $0.image.name.hasPrefix("libswift_Concurrency") } + images
        for image in ordered {
            let found = image.addresses(of: names)
            if !found.isEmpty { return found }
        }
        return [:]
    }

    package func image(containing address: UInt64) -> Image? {
        images.last { $0.loadAddress <= address }.flatMap { $0.endAddress > address ? $0 : nil }
    }

    /// In ascending order.
    package var threadIDs: [Int32] {
        ProcFile.names(in: "/proc/\(id)/task").compactMap { Int32($0) }.sorted()
    }

    package func thread(_ thread: Int32) -> InspectedThread? {
        let folder = "/proc/\(id)/task/\(thread)/"
        guard let stat = ProcFile.text(folder + "stat"),
            let fields = RunningProcess.fields(of: stat)
        else { return nil }
        var found = InspectedThread(
            id: ThreadID(rawValue: thread),
            name: ProcFile.text(folder + "comm")?.trimmedLine ?? "", state: fields.state)
        let channel = ProcFile.text(folder + "wchan") ?? ""
        found.waitChannel = channel == "0" ? "" : channel
        guard let inspector else {
            found.failure = .system(errno: ENOMEM)
            return found
        }
        var taken = stall_inspected_thread()
        let error = stall_inspector_capture(inspector, thread, &taken)
        found.isRunning = taken.is_running
        if taken.system_call >= 0 {
            found.systemCall = Int32(truncatingIfNeeded: taken.system_call)
            found.arguments = withUnsafeBytes(of: taken.arguments) {
                Array($0.bindMemory(to: UInt64.self))
            }
        }
        found.stackPointer = taken.stack_pointer
        switch error {
        case 0: break
        case ESRCH: return nil
        case EPERM, EACCES: found.failure = .notPermitted
        case EAGAIN: found.failure = .restless
        default: found.failure = .system(errno: error)
        }
        guard error == 0 else { return found }
        let frames = UnsafeBufferPointer(start: taken.frames, count: Int(taken.count))
        found.stack = CapturedStack(
            addresses: frames.map {
                CodeAddress(
                    $0.address, CodeAddressKind(rawValue: $0.kind.rawValue) ?? .returnAddress,
                    isGuessed: $0.is_guessed)
            }, isTruncated: taken.is_truncated, method: .signalFree)
        found.words = Array(
            UnsafeBufferPointer(start: taken.words, count: Int(taken.word_count)))
        return found
    }
}

extension String {
    fileprivate var trimmedLine: String { String(prefix { $0 != "\n" }) }
}
