// EventRunLoop beside the loops that its users would otherwise pick. The work is that of LoopBenchmark.
//
//     Benchmarks/Peers/setup && swift run -c release --package-path Benchmarks/Peers PeersBenchmark \
//         [--rounds N] [--only CONTESTANT] [--load] [NAME]
//
// `--load`: only the loops with many items.

import CPeers
import Foundation
import NIOCore
import NIOPosix
import StallRunLoop

@main struct PeersBenchmark {
    nonisolated static func main() throws {
        var arguments = Array(CommandLine.arguments.dropFirst())
        func option(_ name: String) -> String? {
            guard let index = arguments.firstIndex(of: name), index + 1 < arguments.count else {
                return nil
            }
            defer { arguments.removeSubrange(index...index + 1) }
            return arguments[index + 1]
        }
        let isLoadOnly = arguments.contains("--load")
        arguments.removeAll { $0 == "--load" }
        let rounds = option("--rounds").flatMap { Int($0) } ?? 5
        let contestant = option("--only")
        var bench = Bench(rounds: rounds, filter: arguments.first, contestant: contestant)

        bench.load(sizes: [1_000, 10_000, 100_000, 1_000_000])
        guard !isLoadOnly else { return try bench.results.append() }

        bench.compare(
            "iteration, poll path",
            [
                Contestant(name: "EventRunLoop") { onThread { iterate(200_000) } },
                Contestant(name: "libuv") {
                    onThread { Double(peers_uv_iterate(200_000)) / 200_000 }
                },
                Contestant(name: "GLib") {
                    onThread { Double(peers_glib_iterate(200_000)) / 200_000 }
                },
                Contestant(name: "SwiftNIO") { iterateNIO(200_000) },
            ])
        for producers in [1, 4] {
            let posts = 400_000 / producers
            let total = Double(posts * producers)
            bench.compare(
                "cross-thread post", size: producers, unit: "ns/post",
                [
                    Contestant(name: "EventRunLoop") {
                        onThread { post(posts, producers, capturing: false) } / total
                    },
                    Contestant(name: "libuv, own nodes") {
                        Double(peers_uv_post(UInt64(posts), CInt(producers), false)) / total
                    },
                    Contestant(name: "EventRunLoop, capturing") {
                        onThread { post(posts, producers, capturing: true) } / total
                    },
                    Contestant(name: "libuv, malloc") {
                        Double(peers_uv_post(UInt64(posts), CInt(producers), true)) / total
                    },
                    Contestant(name: "GLib") {
                        Double(peers_glib_post(UInt64(posts / 4), CInt(producers))) * 4 / total
                    },
                    Contestant(name: "SwiftNIO") { postNIO(posts, producers) / total },
                ])
        }
        for size in [10, 1_000, 100_000, 1_000_000] {
            let repeats = max(1, 2_000 / size)
            for phase in [TimerPhase.insert, .cancel] {
                bench.compare(
                    "timer \(phase)", size: size,
                    [
                        Contestant(name: "EventRunLoop") {
                            onThread { playTimers(size, phase, rounds: repeats + 1) }
                        },
                        Contestant(name: "libuv") {
                            onThread { playC(size, repeats, phase, peers_uv_timers) }
                        },
                        Contestant(name: "GLib") {
                            onThread { playC(size, repeats, phase, peers_glib_timers) }
                        },
                    ]
                        + (size <= 100_000
                            ? [Contestant(name: "SwiftNIO") { playTimersNIO(size, phase) }] : []))
            }
        }
        for active in [1, 100, 1_000] {
            bench.compare(
                "descriptor event", size: active,
                [
                    Contestant(name: "EventRunLoop batch") {
                        onThread { serve(active, 50_000, .batch) }
                    },
                    Contestant(name: "EventRunLoop strict") {
                        onThread { serve(active, 50_000, .strict) }
                    },
                    Contestant(name: "libuv") {
                        onThread { Double(peers_uv_descriptors(CInt(active), 50_000)) / 50_000 }
                    },
                ])
        }
        try bench.results.append()
    }
}
