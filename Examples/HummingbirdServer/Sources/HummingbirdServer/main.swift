// A server with JSON routes, a route that blocks, and a lock that a background job holds too long.
//
//     HummingbirdServer [PORT] [STORE]        curl localhost:8080/orders/7, /report, /stock

import Foundation
import Hummingbird
import NIOPosix
import StallAgent
import StallAgentNIO

struct Order: ResponseCodable {
    var id: String
    var total: Double
}

/// What routes and the background job share.
final class Stock: Sendable {
    private let lock = NSLock()

    func count() -> Int { lock.withLock { 42 } }
    /// Holds the lock for far too long, once every ten seconds.
    func compact() { lock.withLock { Thread.sleep(forTimeInterval: 0.4) } }
}

/// A file that is written the slow way, on a thread of the pool.
func writeReport() -> String {
    Thread.sleep(forTimeInterval: 0.5)
    return "written\n"
}

let arguments = CommandLine.arguments
let port = arguments.count > 1 ? Int(arguments[1]) ?? 8080 : 8080

// The two lines.
let monitor = try StallMonitor.start(
    .init(app: "shop", version: "1.0", store: arguments.count > 2 ? arguments[2] : "stalls.sqlite"))
monitor.watch(MultiThreadedEventLoopGroup.singleton, as: "http", threshold: .milliseconds(50))
monitor.watchTasks(threshold: .milliseconds(100))

let stock = Stock()
let router = Router()
router.add(middleware: StallActivityMiddleware(monitor: monitor))
router.get("/orders/:id") { _, context in
    Order(id: try context.parameters.require("id"), total: 12.5)
}
router.get("/report") { _, _ in writeReport() }
router.get("/stock") { _, _ in "\(stock.count())\n" }

Thread.detachNewThread {
    while true {
        Thread.sleep(forTimeInterval: 10)
        stock.compact()
    }
}

let app = Application(
    router: router, configuration: .init(address: .hostname("127.0.0.1", port: port)),
    services: [monitor.service])
try await app.runService()
