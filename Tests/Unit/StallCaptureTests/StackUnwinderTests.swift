import CCaptureTesting
import CStackCapture
import Foundation
import Testing
import TestSupport

private let (rbx, rbp, rsp, r12, rip) = (3, 6, 7, 12, 16)
/// What every x86_64 CIE begins with: CFA = rsp + 8, return address at CFA - 8.
private let entry: [UInt8] = [0x0c, 7, 8, 0x90, 1]
/// The first function of a thread: its return address is undefined.
private let outermost = CraftedImage.Function(
    range: 0x1000..<0x1100, instructions: [0x07, 16], commonInstructions: entry)

/// Goal: each call frame instruction means what DWARF 5 and the GNU extensions specify.
/// Method: synthetic images. A function at 0x100 with the instructions under test is called from the outermost one;
/// where the unwinding arrives shows which word it used as the return address.
@Suite struct CallFrameInstructionTests {
    struct Case: CustomTestStringConvertible {
        var testDescription: String
        var instructions: [UInt8]
        /// The word of the stack that holds the return address.
        var word: Int
        var at = 0x20
        var registers: [Int: UInt64] = [:]
    }

    static let stack = CraftedStack()
    static let cases: [Case] = [
        Case(testDescription: "none: the CIE's row", instructions: [], word: 0),
        Case(testDescription: "def_cfa_offset", instructions: [0x0e, 24], word: 2),
        Case(testDescription: "def_cfa_offset_sf", instructions: [0x13, 0x7d], word: 2),  // -3 * -8
        Case(
            testDescription: "def_cfa", instructions: [0x0c, 6, 16], word: 5,
            registers: [rbp: stack.address(4)]),
        Case(
            testDescription: "def_cfa_sf", instructions: [0x12, 6, 0x7e], word: 5,
            registers: [rbp: stack.address(4)]),
        Case(
            testDescription: "def_cfa_register", instructions: [0x0e, 16, 0x0d, 6], word: 5,
            registers: [rbp: stack.address(4)]),
        Case(testDescription: "advance_loc, before it", instructions: [0x61, 0x0e, 24], word: 0),
        Case(testDescription: "advance_loc, at it", instructions: [0x60, 0x0e, 24], word: 2),
        Case(
            testDescription: "advance_loc1",
            instructions: [0x02, 0x20, 0x0e, 24, 0x02, 1, 0x0e, 32], word: 2),
        Case(
            testDescription: "advance_loc2",
            instructions: [0x03, 0x20, 0, 0x0e, 24, 0x03, 1, 0, 0x0e, 32], word: 2),
        Case(
            testDescription: "advance_loc4",
            instructions: [0x04, 0x20, 0, 0, 0, 0x0e, 24, 0x04, 1, 0, 0, 0, 0x0e, 32], word: 2),
        Case(testDescription: "offset", instructions: [0x0e, 40, 0x90, 2], word: 3),
        Case(testDescription: "offset_extended", instructions: [0x0e, 40, 0x05, 16, 3], word: 2),
        Case(
            testDescription: "offset_extended_sf", instructions: [0x0e, 40, 0x11, 16, 2], word: 3),
        Case(
            testDescription: "GNU_negative_offset_extended",
            instructions: [0x0e, 16, 0x2f, 16, 2], word: 4),
        Case(testDescription: "restore", instructions: [0x0e, 40, 0x90, 3, 0xd0], word: 4),
        Case(
            testDescription: "restore_extended", instructions: [0x0e, 40, 0x90, 3, 0x06, 16],
            word: 4),
        Case(
            testDescription: "remember_state and restore_state",
            instructions: [0x0e, 24, 0x0a, 0x0e, 48, 0x90, 3, 0x0b], word: 2),
        Case(
            testDescription: "GNU_args_size and nop", instructions: [0x2e, 16, 0x00, 0x0e, 24],
            word: 2),
        Case(
            testDescription: "register", instructions: [0x09, 16, 3], word: 9,
            registers: [rbx: 9]),  // replaced below by the return address itself
        Case(
            testDescription: "def_cfa_expression: rsp + 24", instructions: [0x0f, 2, 0x77, 24],
            word: 2),
        Case(
            testDescription: "def_cfa_expression: deref",
            instructions: [0x0f, 3, 0x77, 0x38, 0x06], word: 9),
        Case(
            testDescription: "expression: CFA - 16",
            instructions: [0x0e, 40, 0x10, 16, 2, 0x40, 0x1c], word: 3),
        Case(
            testDescription: "val_expression: deref of CFA - 24",
            instructions: [0x0e, 40, 0x16, 16, 4, 0x08, 24, 0x1c, 0x06], word: 2),
        Case(
            testDescription:
                "expression of a PLT entry: rsp + 8, and 8 more from the eleventh byte on",
            instructions: [0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22],
            word: 1,
            at: 0x2b),
        Case(
            testDescription: "expression with a branch over drop",
            instructions: [0x0f, 8, 0x77, 24, 0x31, 0x28, 1, 0, 0x13, 0x96], word: 2),
    ]

    @Test(arguments: cases) func `instructions lead to the right return address`(_ example: Case) {
        let image = CraftedImage([
            .init(
                range: 0x100..<0x180, instructions: example.instructions, commonInstructions: entry),
            outermost,
        ])
        var stack = Self.stack
        let returnAddress = image.address(0x1010)
        for index in stack.words.indices { stack.words[index] = 0x1111 }
        stack.words[example.word] = returnAddress
        // What the deref case reads: a CFA whose return address is word 9.
        stack.words[7] = stack.address(10)
        // The PLT expression uses the low bits of the program counter.
        var registers = example.registers.merging([
            rsp: stack.address(0), rip: image.address(0x100 + example.at),
        ]) { old, _ in old }
        if registers[rbx] == 9 { registers[rbx] = returnAddress }
        let (frames, isTruncated) = stack.unwind(image, registers: registers)
        #expect(frames.map(\.address) == [image.address(0x100 + example.at), returnAddress])
        #expect(!isTruncated)
    }

    @Test func `saved registers are the caller's`() {
        // The inner function saves rbp at CFA - 16; the middle one's CFA is rbp + 16.
        let image = CraftedImage([
            .init(
                range: 0x100..<0x180, instructions: [0x0e, 24, 0x86, 2], commonInstructions: entry),
            .init(range: 0x200..<0x280, instructions: [0x0c, 6, 16], commonInstructions: entry),
            outermost,
        ])
        var stack = CraftedStack()
        stack.words[1] = stack.address(8)
        stack.words[2] = image.address(0x210)
        stack.words[9] = image.address(0x1010)
        let (frames, isTruncated) = stack.unwind(
            image, registers: [rsp: stack.address(0), rip: image.address(0x120)])
        #expect(
            frames.map(\.address) == [
                image.address(0x120), image.address(0x210), image.address(0x1010),
            ])
        #expect(
            frames.map(\.kind) == [
                STALL_FRAME_INTERRUPTED, STALL_FRAME_RETURN_ADDRESS, STALL_FRAME_RETURN_ADDRESS,
            ])
        #expect(!isTruncated)
    }

    @Test
    func
        `behind a signal frame the program counter is an instruction, and the stack may be another`()
    {
        // The handler (0x100) returns to the trampoline (0x200), which saved rsp at its stack + 8 and rip at + 16.
        let image = CraftedImage([
            .init(range: 0x100..<0x180, instructions: [], commonInstructions: entry),
            .init(
                range: 0x1ff..<0x280,
                instructions: [0x0f, 3, 0x77, 8, 0x06, 0x10, 7, 2, 0x77, 8, 0x10, 16, 2, 0x77, 16],
                commonInstructions: entry, augmentation: "zRS"),
            .init(range: 0x300..<0x380, instructions: [], commonInstructions: entry),
            outermost,
        ])
        var stack = CraftedStack()
        stack.words[40] = image.address(0x200)
        stack.words[42] = stack.address(4)
        stack.words[43] = image.address(0x300)  // its first instruction: looked up as it is
        stack.words[4] = image.address(0x1010)
        let (frames, isTruncated) = stack.unwind(
            image, registers: [rsp: stack.address(40), rip: image.address(0x120)])
        #expect(frames.map(\.address) == [0x120, 0x200, 0x300, 0x1010].map(image.address))
        #expect(frames.map(\.kind.rawValue) == [0, 1, 0, 1])
        #expect(!isTruncated)
    }
}

/// Goal: whatever the tables and the stack hold, the walk ends, and says that frames are missing.
/// Method: crafted defects, and seeded damage to good tables.
@Suite struct BrokenTableTests {
    @Test func `a stack that points back at itself ends`() {
        let image = CraftedImage([
            .init(range: 0x100..<0x180, instructions: [0x0e, 0], commonInstructions: entry)
        ])
        var stack = CraftedStack()
        stack.words = stack.words.map { _ in image.address(0x120) }
        let (frames, isTruncated) = stack.unwind(
            image, registers: [rsp: stack.address(8), rip: image.address(0x120)])
        #expect(frames.count == 2)
        #expect(isTruncated)
    }

    @Test func `a stack that runs out ends`() {
        let image = CraftedImage([
            .init(range: 0x100..<0x180, instructions: [], commonInstructions: entry)
        ])
        var stack = CraftedStack()
        stack.words = stack.words.map { _ in image.address(0x120) }
        let (frames, isTruncated) = stack.unwind(
            image, capacity: 100, registers: [rsp: stack.address(0), rip: image.address(0x120)])
        #expect(frames.count == 65)
        #expect(isTruncated)
    }

    @Test(arguments: [(deadline_ns: UInt64(1), frames: 31), (.max, 65), (0, 65)])
    func `a stack is given up at the deadline with the frames that it has`(
        deadline_ns: UInt64, frames: Int
    ) {
        let image = CraftedImage([
            .init(range: 0x100..<0x180, instructions: [], commonInstructions: entry)
        ])
        var stack = CraftedStack()
        stack.words = stack.words.map { _ in image.address(0x120) }
        let unwinder = stall_unwinder_create(stall_architecture_x86_64)!
        defer { stall_unwinder_destroy(unwinder) }
        _ = stall_unwinder_add_image(
            unwinder, image.base, image.base + UInt64(CraftedImage.size),
            image.address(CraftedImage.codeSize))
        stall_unwinder_set_deadline(unwinder, deadline_ns)
        let (found, isTruncated) = stack.unwind(
            unwinder, capacity: 100, registers: [rsp: stack.address(0), rip: image.address(0x120)])
        #expect(found.count == frames && isTruncated, "the clock is asked every 32 steps")
    }

    @Test func `an address without tables or a frame ends the stack`() {
        let image = CraftedImage([outermost])
        let stack = CraftedStack()
        let (frames, isTruncated) = stack.unwind(
            image, registers: [rsp: stack.address(0), rip: 0x10])
        #expect(frames.map(\.address) == [0x10])
        #expect(isTruncated)
    }

    @Test(
        arguments: [
            [0x0b],  // restore_state without a remembered one
            [UInt8](repeating: 0x0a, count: 100),  // remember_state without end
            [0x3f],  // no such instruction
            [0x0f, 100, 0x77, 0],  // an expression longer than its entry
            [0x0f, 0],  // an expression without a result
            [0x0f, 3, 0x2f, 0xfd, 0xff],  // an expression that loops
            [0x0f, 3, 0x31, 0x30, 0x1b],  // division by zero
            [0x0f, 2, 0x31, 0x22],  // an operator without operands
            [0x0f, 2, 0x12, 0x96],  // dup of nothing
            [0x0f, 3, 0x31, 0x94, 9],  // deref of nine bytes
            [0x0c, 99, 8],  // a register that there is not
            [0x0c, 3, 8],  // a register that is not known
            // A number without end.
            [0x0e, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
        ] as [[UInt8]])
    func `a senseless instruction ends the stack`(_ instructions: [UInt8]) {
        let image = CraftedImage([
            .init(range: 0x100..<0x180, instructions: instructions, commonInstructions: entry),
            outermost,
        ])
        let stack = CraftedStack()
        let (frames, isTruncated) = stack.unwind(
            image, registers: [rsp: stack.address(0), rip: image.address(0x120)])
        #expect(frames.count == 1)
        #expect(isTruncated)
    }

    @Test func `an image whose header lies is refused`() {
        let image = CraftedImage([outermost])
        let unwinder = stall_unwinder_create(stall_architecture_x86_64)!
        defer { stall_unwinder_destroy(unwinder) }
        let (start, end) = (image.base, image.base + UInt64(CraftedImage.size))
        let header = image.address(CraftedImage.codeSize)
        #expect(stall_unwinder_add_image(unwinder, start, end, header))
        #expect(!stall_unwinder_add_image(unwinder, start, end, end))
        #expect(!stall_unwinder_add_image(unwinder, start, end, 0))
        // More entries than the image has room for.
        image.write([0xff, 0xff, 0xff, 0x7f], at: CraftedImage.codeSize + 8)
        #expect(!stall_unwinder_add_image(unwinder, start, end, header))
        image.write([9], at: CraftedImage.codeSize)  // an unknown version
        #expect(!stall_unwinder_add_image(unwinder, start, end, header))
    }

    @Test func `an image that is gone is forgotten with its rows`() {
        let unwinder = stall_unwinder_create(stall_architecture_x86_64)!
        defer { stall_unwinder_destroy(unwinder) }
        var stack = CraftedStack()
        var registers: [Int: UInt64] = [:]
        do {
            let image = CraftedImage([
                .init(range: 0x100..<0x180, instructions: [], commonInstructions: entry), outermost,
            ])
            _ = stall_unwinder_add_image(
                unwinder, image.base, image.base + UInt64(CraftedImage.size),
                image.address(CraftedImage.codeSize))
            stack.words[0] = image.address(0x1010)
            registers = [rsp: stack.address(0), rip: image.address(0x120)]
            #expect(stack.unwind(unwinder, registers: registers).frames.count == 2)
        }
        stall_unwinder_refresh(unwinder)
        let (frames, isTruncated) = stack.unwind(unwinder, registers: registers)
        #expect(frames.count == 1)
        #expect(isTruncated)
    }

    /// Every byte of the tables is damaged in turn, and then thousands of times several at once.
    @Test func `damaged tables neither crash nor loop`() {
        var random = SeededGenerator(seed: 20_261_121)
        for round in 0..<6_000 {
            let image = CraftedImage([
                .init(
                    range: 0x100..<0x180,
                    instructions: [0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x0a, 0x8c, 3, 0x0b],
                    commonInstructions: entry),
                .init(
                    range: 0x200..<0x280,
                    instructions: [0x0f, 3, 0x77, 8, 0x06, 0x10, 16, 2, 0x77, 16],
                    commonInstructions: entry, augmentation: "zRS"),
                outermost,
            ])
            let tables = CraftedImage.codeSize..<image.tableEnd
            if round < tables.count {
                image.write([.random(in: 0...255, using: &random)], at: tables.lowerBound + round)
            } else {
                for _ in 0..<Int.random(in: 1...12, using: &random) {
                    image.write(
                        [.random(in: 0...255, using: &random)],
                        at: .random(in: tables, using: &random))
                }
            }
            var stack = CraftedStack()
            for index in stack.words.indices {
                stack.words[index] =
                    switch Int.random(in: 0..<4, using: &random) {
                    case 0: image.address(.random(in: 0..<0x1100, using: &random))
                    case 1: stack.address(.random(in: 0..<64, using: &random))
                    case 2: image.address(0x210)
                    default: random.next()
                    }
            }
            let (frames, _) = stack.unwind(
                image,
                registers: [
                    rsp: stack.address(0), rbp: stack.address(3), r12: random.next(),
                    rip: image.address(0x120),
                ])
            #expect((1...32).contains(frames.count))
        }
    }
}

/// Goal: a function that no table covers is unwound by its instructions, at each of them.
/// Method: a function as Swift's libraries have them, without an entry, called from the outermost function; the stack is
/// as it would be at each instruction.
@Suite struct FunctionWithoutTablesTests {
    // ret, padding to 0x10; push rbp; mov rbp, rsp; push r14; push rbx; sub rsp, 16; ...; add rsp, 16; pop rbx; pop r14;
    // pop rbp; ret
    static let code: [UInt8] = [
        0xc3, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc,
        0xcc,
        0x55, 0x48, 0x89, 0xe5, 0x41, 0x56, 0x53, 0x48, 0x83, 0xec, 0x10, 0x31, 0xc0, 0x90, 0x90,
        0x48, 0x83, 0xc4, 0x10, 0x5b, 0x41, 0x5e, 0x5d, 0xc3,
    ]
    // The stack, from the return address down: its index in words is 30.
    static let cases: [(at: Int, stack: Int, hasFrame: Bool)] = [
        (0x10, 30, false), (0x11, 29, false), (0x14, 29, true), (0x16, 28, true), (0x17, 27, true),
        (0x1b, 25, true), (0x1f, 25, true), (0x23, 27, true), (0x24, 28, true), (0x26, 29, true),
        (0x27, 30, false),
    ]

    @Test(arguments: cases) func `each instruction leads to the caller`(
        at: Int, top: Int, hasFrame: Bool
    ) {
        let image = CraftedImage([
            .init(range: 0x100..<0x180, instructions: [], commonInstructions: entry), outermost,
        ])
        image.write(Self.code, at: 0x200)
        image.write([0xe8, 0xfb, 0xf1, 0xff, 0xff], at: 0x1010)  // a call of 0x210
        var stack = CraftedStack()
        stack.words[30] = image.address(0x1015)
        stack.words[29] = 0x1234  // the caller's rbp
        let (frames, isTruncated) = stack.unwind(
            image,
            registers: [
                rsp: stack.address(top), rbp: hasFrame ? stack.address(29) : 0x1234,
                rip: image.address(0x200 + at),
            ])
        #expect(frames.map(\.address) == [image.address(0x200 + at), image.address(0x1015)])
        #expect(!isTruncated)
    }

    // push rax; mov rsi, rdi; call n; test rax, rax; setne al; pop rcx; ret: as libswiftDispatch's timed waits are.
    static let withoutFramePointer: [UInt8] = [
        0x50, 0x48, 0x89, 0xfe, 0xe8, 0, 0, 0, 0, 0x48, 0x85, 0xc0, 0x0f, 0x95, 0xc0, 0x59, 0xc3,
    ]
    // test rdi, rdi; je to the end; push rbp; mov rbp, rsp; xor eax, eax; pop rbp; ret; mov dl, 1; ret: as the
    // standard library's small functions are.
    static let framedInTheMiddle: [UInt8] = [
        0x48, 0x85, 0xff, 0x74, 0x08, 0x55, 0x48, 0x89, 0xe5, 0x31, 0xc0, 0x5d, 0xc3, 0xb2, 0x01,
        0xc3,
    ]
    // lea rsp, [rbp - 8]; pop rbx; pop rbp; ret: room made at run time is given back.
    static let withRunTimeRoom: [UInt8] = [0x90, 0x48, 0x8d, 0x65, 0xf8, 0x5b, 0x5d, 0xc3]

    @Test(
        arguments: [
            ("at its return address", withoutFramePointer, 9, 29),
            ("before its pop", withoutFramePointer, 15, 29),
            ("before its return", withoutFramePointer, 16, 30),
            ("before the frame", framedInTheMiddle, 0, 30),
            ("in the frame", framedInTheMiddle, 9, 29),
            ("behind the frame", framedInTheMiddle, 13, 30),
            ("with room made at run time", withRunTimeRoom, 0, 12),
        ] as [(String, [UInt8], Int, Int)])
    func `the instructions up to the return show the frame`(
        _: String, code: [UInt8], at: Int, top: Int
    ) {
        let image = CraftedImage([
            .init(range: 0x100..<0x180, instructions: [], commonInstructions: entry), outermost,
        ])
        image.write([0xc3] + [UInt8](repeating: 0xcc, count: 15) + code, at: 0x200)
        image.write([0xe8, 0xfb, 0xf1, 0xff, 0xff], at: 0x1010)  // a call of 0x210
        var stack = CraftedStack()
        stack.words[30] = image.address(0x1015)
        stack.words[29] = 0x1234
        let (frames, isTruncated) = stack.unwind(
            image,
            registers: [
                rsp: stack.address(top), rbp: stack.address(29), rip: image.address(0x210 + at),
            ])
        #expect(frames.map(\.address) == [image.address(0x210 + at), image.address(0x1015)])
        #expect(!isTruncated)
    }

    /// The oracle is a disassembler, on a library that every Swift program on Linux has.
    @Test func `the lengths of instructions are objdump's`() throws {
        let path = try #require(testing_library_of("dispatch_async_f").map { String(cString: $0) })
        let program = try BuiltProgram(
            "objdump", ["-d", "-w", "--insn-width=16", path], in: URL(filePath: "/usr/bin"))
        let listing = program.finish().output
        var count = 0
        for line in listing.split(separator: "\n") {
            let fields = line.split(separator: "\t")
            guard fields.count >= 3, !fields[2].contains("(bad)") else { continue }
            let bytes = fields[1].split(separator: " ").compactMap { UInt8($0, radix: 16) }
            #expect(
                stall_x86_64_instruction_length(bytes, UInt64(bytes.count)) == bytes.count,
                "\(line)")
            count += 1
        }
        #expect(count > 10_000)
    }
}

/// Goal: a frame pointer that a signal-free capture does not have is found, and stale stack is not used instead.
/// Method: functions with tables that need it, called from the outermost function; their code shows where they save it.
@Suite struct LostFramePointerTests {
    // push rbp; mov rbp, rsp; push r14; push rbx; sub rsp, 16
    static let prologue: [UInt8] = [
        0x55, 0x48, 0x89, 0xe5, 0x41, 0x56, 0x53, 0x48, 0x83, 0xec, 0x10,
    ]
    /// The functions at 0x100, which blocks, and at 0x200, which keeps its CFA in rbp + 16 and is called from 0x1010.
    static func image(_ more: [CraftedImage.Function] = []) -> CraftedImage {
        let image = CraftedImage(
            [
                .init(range: 0x100..<0x180, instructions: [], commonInstructions: entry),
                .init(
                    range: 0x200..<0x280, instructions: [0x0c, 6, 16, 0x86, 2],
                    commonInstructions: entry), outermost,
            ] + more)
        image.write(prologue, at: 0x200)
        image.write([0xe8, 0xeb, 0xf1, 0xff, 0xff], at: 0x1010)
        return image
    }

    @Test func `it lies where the prologue puts it`() {
        let image = Self.image()
        var stack = CraftedStack()
        stack.words[4] = image.address(0x21d)  // the return address of the function at 0x100
        stack.words[10] = image.address(0x1015)
        let (frames, isTruncated) = stack.unwind(
            image, registers: [rsp: stack.address(4), rip: image.address(0x120)])
        #expect(frames.map(\.address) == [0x120, 0x21d, 0x1015].map(image.address))
        #expect(frames.allSatisfy { !$0.is_guessed })
        #expect(!isTruncated)
    }

    /// Behind room that was made at run time lie dead frames. One of them leads outwards: its return address follows a call
    /// in the outermost function, but of a function at 0x300, of which all the code is known.
    @Test(
        arguments: [
            ("that only returns: refused", [0x90, 0x90, 0xc3], 0x1015),
            (
                "that may have jumped here: the nearest is taken", [0xe9, 0, 0xf0, 0xff, 0xff],
                0x1025
            ),
        ] as [(String, [UInt8], Int)])
    func `an old frame behind a call of another function`(_: String, callee: [UInt8], caller: Int) {
        let image = Self.image([
            .init(range: 0x300..<0x310, instructions: [], commonInstructions: entry),
            .init(range: 0x320..<0x330, instructions: [], commonInstructions: entry),
        ])
        image.write([0xe8, 0xdb, 0xf2, 0xff, 0xff], at: 0x1020)  // a call of 0x300
        image.write(callee, at: 0x300)
        // The live frame's return address follows a call of 0x320, which jumps to the function.
        image.write([0xe8, 0x0b, 0xf3, 0xff, 0xff], at: 0x1010)
        image.write([0xe9, 0xdb, 0xfe, 0xff, 0xff], at: 0x320)
        var stack = CraftedStack()
        stack.words[4] = image.address(0x21d)
        stack.words[20] = image.address(0x1025)  // dead
        stack.words[30] = image.address(0x1015)  // live
        let (frames, isTruncated) = stack.unwind(
            image, registers: [rsp: stack.address(4), rip: image.address(0x120)])
        #expect(frames.last?.address == image.address(caller))
        #expect(frames.last?.is_guessed == true)
        #expect(!isTruncated)
    }
}

/// Goal: the stack goes on through code that a compiler made at run time, or as V8 makes its own when it is built.
/// Method: such code, which has no table and keeps a frame pointer, is called from the outermost function at 0x1013 and
/// calls another one, both by a register.
@Suite struct GeneratedCodeTests {
    static let callByRegister: [UInt8] = [0xff, 0xd0]

    static func image(codeSize: Int = CraftedImage.codeSize) -> CraftedImage {
        let image = CraftedImage(
            [
                .init(range: 0x100..<0x180, instructions: [], commonInstructions: entry),
                .init(
                    range: 0x200..<0x280, instructions: [0x0c, 6, 16, 0x86, 2],
                    commonInstructions: entry), outermost,
            ], codeSize: codeSize)
        image.write(LostFramePointerTests.prologue, at: 0x200)
        image.write(callByRegister, at: 0x1013)
        return image
    }

    @Test(arguments: [(1 << 20, 3), (1 << 16, 2)])
    func `a large part of an image without tables, not a small one`(codeSize: Int, frames: Int) {
        let image = Self.image(codeSize: codeSize)
        let place = codeSize / 2
        image.write(Self.callByRegister, at: place)
        var stack = CraftedStack()
        stack.words[4] = image.address(place + 2)
        stack.words[10] = stack.address(20)
        stack.words[11] = image.address(0x1015)
        let (found, isTruncated) = stack.unwind(
            image,
            registers: [rsp: stack.address(4), rbp: stack.address(10), rip: image.address(0x120)])
        #expect(
            found.map(\.address) == [0x120, place + 2, 0x1015].prefix(frames).map(image.address))
        #expect(isTruncated == (frames == 2))
        #expect(found.last?.is_guessed == (frames == 3))
    }

    /// V8's stubs have none. Their caller's frame is the nearest that the frame pointer leads to.
    @Test func `from a function without a frame`() {
        let image = Self.image()
        let generated = CraftedImage([outermost])  // in no image that the unwinder knows
        generated.write(Self.callByRegister, at: 0x300)
        var stack = CraftedStack()
        stack.words[4] = generated.address(0x302)
        stack.words[20] = stack.address(30)
        stack.words[21] = image.address(0x1015)
        let (found, isTruncated) = stack.unwind(
            image,
            registers: [
                rsp: stack.address(4), rbp: stack.address(20), rip: generated.address(0x400),
            ])
        #expect(
            found.map(\.address) == [
                generated.address(0x400), generated.address(0x302), image.address(0x1015),
            ])
        #expect(!isTruncated)
    }

    /// The thread blocks, so that its frame pointer is not known, and the function at 0x200 needs it.
    @Test func `behind a frame whose pointer is searched for`() {
        let image = Self.image()
        let generated = CraftedImage([outermost])  // in no image that the unwinder knows
        generated.write(Self.callByRegister, at: 0x300)
        image.write([0xe8, 0xe3, 0xff, 0xff, 0xff], at: 0x218)  // of 0x200, by itself
        var stack = CraftedStack()
        stack.words[4] = image.address(0x21d)
        // It made room at run time: its frame is not where its prologue puts it.
        stack.words[20] = stack.address(24)
        stack.words[21] = image.address(0x21d)
        stack.words[24] = stack.address(30)
        stack.words[25] = generated.address(0x302)
        stack.words[30] = stack.address(40)
        stack.words[31] = image.address(0x1015)
        let (found, isTruncated) = stack.unwind(
            image, registers: [rsp: stack.address(4), rip: image.address(0x120)])
        #expect(
            found.map(\.address) == [
                image.address(0x120), image.address(0x21d), image.address(0x21d),
                generated.address(0x302), image.address(0x1015),
            ])
        #expect(!isTruncated)
    }
}
