import StallRunLoop

func primes(below limit: Int) -> [Int] {
    (2..<limit).filter { number in !(2..<number).contains { number % $0 == 0 } }
}

let loop = EventRunLoop.main
let worker = try LoopThread(name: "primes")
let limits = [10, 100, 1_000]
var total = 0

for limit in limits {
    try worker.submit {
        let found = primes(below: limit)  // on the worker's thread
        loop.post { @MainActor in  // and on the main thread
            total += found.count
            print("\(found.count) primes below \(limit)")
            if limit == limits.last { loop.stop() }
        }
    }
}
loop.run()
worker.stop()
print("\(total) primes in all")
