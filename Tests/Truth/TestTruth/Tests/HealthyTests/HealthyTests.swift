// Tests that end, and do what could be taken for a hang.

import Dispatch
import Foundation
import Testing
import XCTest

@Test func sleeps() async throws { try await Task.sleep(nanoseconds: 300_000_000) }

@Test func blocks() {
    let semaphore = DispatchSemaphore(value: 0)
    DispatchQueue.global().asyncAfter(deadline: .now() + 0.2) { semaphore.signal() }
    semaphore.wait()
}

@Test func computes() {
    var sum = 0
    for number in 0..<1_000_000 { sum &+= number }
    #expect(sum != 1)
}

@Test func startsAProgram() throws {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/bin/sleep")
    process.arguments = ["0.1"]
    try process.run()
    process.waitUntilExit()
    #expect(process.terminationStatus == 0)
}

@Test(arguments: 0..<20) func prints(number: Int) { print("line \(number) ::error::\u{1B}[0m") }

@Test func pollsWithALimit() { #expect(poll(nil, 0, 200) == 0) }

final class HealthyXCTests: XCTestCase {
    func testSum() { XCTAssertEqual(1 + 1, 2) }
    func testAsync() async throws { try await Task.sleep(nanoseconds: 100_000_000) }
}
