import CStackCapture
import Testing

/// Goal: arm64 stacks unwind by the same interpreter with that processor's registers, prologues and signed pointers.
/// Method: the bytes of a library that clang 21 built for aarch64-linux-gnu at -O2 from the source below, a stack laid out
/// as its code would, and the unwinder for arm64, which runs on any machine.
///
///     int leaf(int);
///     int sub(int a, int b) { volatile int big[2000]; big[a] = b; return leaf(big[b]) + 1; }
///     int mid(int a, int b, int c) { int x = sub(a, b); int y = sub(b, c); return x * y + a + leaf(c); }
///     int top(int a) { int v[a + 1]; v[0] = 1; return mid(a, v[a], 3) + v[0]; }
@Suite struct Arm64UnwinderTests {
    private static let parts: [(offset: Int, hexadecimal: String)] = [
        (0x338, "011b033b2400000003000000c40001003c00000000010100640000005001010098000000"),
        (
            0x360,
            """
            1000000000000000017a5200017c1e011b0c1f002400000018000000800001003c00000000440e20480c1d209c049e069d08\
            640c1f20480e00dcdedd3000000040000000940001005000000000440e304c0c1d3093029404950696089e0a9d0c700c1f30\
            4c0e00d3d4d5d6dedd0000002400000074000000b00001004800000000440e10440c1d109e029d04780c1f10440e00dedd00\
            000000000000
            """
        ),
        (
            0x103fc,
            """
            fd7bbea9fc0b00f9fd030091ff0740d1ff033dd1e803009101d920b800d961b83900009400040011ff074091ff033d91fc0b\
            40f9fd7bc2a8c0035fd6fd7bbda9f65701a9f44f02a9fd030091f303022af403012af503002a27000094f603002ae003142a\
            e103132a230000941454161be003132a240000948002000bf44f42a9f65741a9fd7bc3a8c0035fd6fd7bbfa9fd0300910804\
            0011e9030091087d7ed3083d009108797c92280108cb1f0100912900805262008052090100b901d960b81500009400040011\
            bf030091fd7bc1a8c0035fd6f07bbfa91001009011ea42f91042179120021fd61f2003d51f2003d51f2003d51001009011ee\
            42f91062179120021fd61001009011f242f91082179120021fd61001009011f642f910a2179120021fd61700000000000000\
            f002000000000000
            """
        ),
    ]
    private static let (x29, x30, sp, pc) = (29, 30, 31, 32)
    private let image = RecordedImage(size: 0x10600, parts: Self.parts)
    private var stack = CraftedStack(words: [UInt64](repeating: 0x1111, count: 1200))

    /// sub, called by mid, called by top, which has no caller.
    init() {
        stack.words[1000] = stack.address(1004)  // sub's frame record
        stack.words[1001] = image.address(0x10458)
        stack.words[1004] = stack.address(1020)  // mid's
        stack.words[1005] = image.address(0x104c0)
        stack.words[1020] = 0  // top's
        stack.words[1021] = 0
    }

    private func unwind(_ registers: [Int: UInt64]) -> (frames: [stall_frame], isTruncated: Bool) {
        let unwinder = stall_unwinder_create(stall_architecture_arm64)!
        defer { stall_unwinder_destroy(unwinder) }
        #expect(
            stall_unwinder_add_image(
                unwinder, image.address(0), image.address(0x10600), image.address(0x338)))
        return stack.unwind(unwinder, registers: registers)
    }

    @Test func `frames with pairs, a large array and an array of variable length`() {
        let (frames, isTruncated) = unwind([
            Self.sp: stack.address(0), Self.x29: stack.address(1000),
            Self.pc: image.address(0x10420),
        ])
        #expect(frames.map(\.address) == [0x10420, 0x10458, 0x104c0].map(image.address))
        #expect(!isTruncated)
    }

    @Test func `a frame pointer that is not known is found by the prologue`() {
        let (frames, isTruncated) = unwind([
            Self.sp: stack.address(0), Self.pc: image.address(0x10420),
        ])
        #expect(frames.map(\.address) == [0x10420, 0x10458, 0x104c0].map(image.address))
        #expect(frames.allSatisfy { !$0.is_guessed })
        #expect(!isTruncated)
    }

    @Test func `at its first instruction a function returns by register 30`() {
        let (frames, isTruncated) = unwind([
            Self.sp: stack.address(1004), Self.x29: stack.address(1004),
            Self.x30: image.address(0x10458),
            Self.pc: image.address(0x103fc),
        ])
        #expect(frames.map(\.address) == [0x103fc, 0x10458, 0x104c0].map(image.address))
        #expect(!isTruncated)
    }

    @Test mutating func `signed return addresses are stripped`() {
        stack.words[1001] |= 0x0012 << 48
        stack.words[1005] |= 0xffb4 << 48
        let (frames, _) = unwind([
            Self.sp: stack.address(0), Self.x29: stack.address(1000),
            Self.pc: image.address(0x10420),
        ])
        #expect(frames.map(\.address) == [0x10420, 0x10458, 0x104c0].map(image.address))
    }

    @Test(arguments: [0x104f0, 0x104f4, 0x104f8, 0x104fc])
    func `in a linkage stub, which has no table, a thread returns by register 30`(counter: Int) {
        let (frames, isTruncated) = unwind([
            Self.sp: stack.address(1004), Self.x29: stack.address(1004),
            Self.x30: image.address(0x10458), Self.pc: image.address(counter),
        ])
        #expect(frames.map(\.address) == [counter, 0x10458, 0x104c0].map(image.address))
        #expect(!isTruncated)
    }

    @Test func `without a link register a caller is not invented`() {
        // No word of the stack is the return address of a caller whose frame ends here.
        let (frames, isTruncated) = unwind([
            Self.sp: stack.address(1003), Self.pc: image.address(0x103fc),
        ])
        #expect(frames.count == 1)
        #expect(isTruncated)
    }
}

/// Goal: a thread that is blocked in a function without a frame, whose return address is in a register that the kernel
/// does not show, has its callers.
/// Method: the bytes of a library that clang 21 built for aarch64-linux-gnu at -O2, and a stack laid out as its code would.
/// `wait_here` and `cancellable` are in assembly as glibc 2.43 makes its cancellable system calls: the frame is made in the
/// middle of the function. `top` calls `middle`, which calls `cancellable`, which calls `wait_here`; and `calls`, which has
/// an array and calls `wait_here`.
@Suite struct Arm64LeafTests {
    private static let parts: [(offset: Int, hexadecimal: String)] = [
        (
            0x29c,
            """
            011b033b3000000005000000fc000100480000000c0101005c000000340101007c00000064010100a40000007c010100cc000000
            """
        ),
        (
            0x2d0,
            """
            1000000000000000017a5200017c1e011b0c1f001000000018000000ac00010010000000000000001c0000002c000000a80001\
            0028000000004c0e209d089e0650ddde0e00000000240000004c000000b00001003000000000440eb001480c1d109e029d0458\
            0c1fb001480e00dedd002400000074000000b80001001800000000440e10440c1d109e029d04480c1f10440e00dedd00000028\
            0000009c000000a80001003000000000440e20480c1d20930294049e069d08580c1f20480e00d3d4dedd0000000000
            """
        ),
        (
            0x10398,
            """
            5f2403d5e80301aa010000d4c0035fd6070100b5e80306aafd7bbea9e70305aafd030091f7ffff97fd7bc2a8c0035fd6010000\
            d4c0035fd6ffc302d1fd7b0aa9fd830291e803009100d920b8e00740b9ecffff97e80b40b90001000bfd7b4aa9ffc30291c003\
            5fd6fd7bbfa9fd030091e8ffff9700040011fd7bc1a8c0035fd6fd7bbea9f44f01a9fd030091f303002af6ffff97f403002ae0\
            03132ae7ffff970004140bf44f41a9fd7bc2a8c0035fd6
            """
        ),
    ]
    private static let (sp, pc) = (31, 32)
    /// In `wait_here`, behind the system call.
    private static let blocked = 0x103a4
    private let image = RecordedImage(size: 0x10500, parts: Self.parts)
    private var stack = CraftedStack(words: [UInt64](repeating: 0x1111, count: 200))

    private func unwind() -> (frames: [stall_frame], isTruncated: Bool) {
        let unwinder = stall_unwinder_create(stall_architecture_arm64)!
        defer { stall_unwinder_destroy(unwinder) }
        #expect(
            stall_unwinder_add_image(
                unwinder, image.address(0), image.address(0x10500), image.address(0x29c)))
        return stack.unwind(
            unwinder,
            registers: [Self.sp: stack.address(0), Self.pc: image.address(Self.blocked)])
    }

    /// The frame record of `top`, which has no caller, and of its callee.
    private mutating func setRecord(at place: Int, top: Int, returnAddress: Int) {
        stack.words[place] = stack.address(top)
        stack.words[place + 1] = image.address(returnAddress)
        stack.words[top] = 0
        stack.words[top + 1] = 0
    }

    @Test mutating func `through a function that makes its frame in the middle`() {
        stack.words[0] = stack.address(4)  // cancellable's record, at its stack pointer
        stack.words[1] = image.address(0x1040c)
        setRecord(at: 4, top: 8, returnAddress: 0x1042c)
        let (frames, isTruncated) = unwind()
        #expect(
            frames.map(\.address)
                == [Self.blocked, 0x103c0, 0x1040c, 0x1042c].map(image.address))
        #expect(!isTruncated)
    }

    @Test mutating func `through a function with an array below its frame record`() {
        setRecord(at: 20, top: 24, returnAddress: 0x10438)
        let (frames, isTruncated) = unwind()
        #expect(frames.map(\.address) == [Self.blocked, 0x103ec, 0x10438].map(image.address))
        #expect(!isTruncated)
    }

    @Test mutating func `a dead frame of another callee is passed over`() {
        // Of an earlier call of `middle`: its caller is right, but no frame of it can be here.
        stack.words[6] = stack.address(24)
        stack.words[7] = image.address(0x1042c)
        setRecord(at: 20, top: 24, returnAddress: 0x10438)
        let (frames, _) = unwind()
        #expect(frames.map(\.address) == [Self.blocked, 0x103ec, 0x10438].map(image.address))
    }

    @Test mutating func `of a dead frame in the right place and a live one, none is chosen`() {
        stack.words[0] = stack.address(4)
        stack.words[1] = image.address(0x1040c)
        setRecord(at: 20, top: 24, returnAddress: 0x10438)
        let (frames, isTruncated) = unwind()
        #expect(frames.map(\.address) == [image.address(Self.blocked)])
        #expect(isTruncated)
    }

    @Test mutating func `a frame at another distance is none`() {
        setRecord(at: 22, top: 26, returnAddress: 0x10438)
        let (frames, isTruncated) = unwind()
        #expect(frames.count == 1)
        #expect(isTruncated)
    }
}

/// Recorded bytes at their offsets in a mapping of their own.
final class RecordedImage {
    private let memory: UnsafeMutableRawBufferPointer

    init(size: Int, parts: [(offset: Int, hexadecimal: String)]) {
        memory = .allocate(byteCount: size, alignment: 4096)
        memory.initializeMemory(as: UInt8.self, repeating: 0)
        for part in parts {
            let digits = part.hexadecimal.compactMap(\.hexDigitValue)
            for index in 0..<digits.count / 2 {
                memory[part.offset + index] = UInt8(digits[2 * index] << 4 | digits[2 * index + 1])
            }
        }
    }

    deinit { memory.deallocate() }

    func address(_ offset: Int) -> UInt64 {
        UInt64(UInt(bitPattern: memory.baseAddress!)) + UInt64(offset)
    }
}
