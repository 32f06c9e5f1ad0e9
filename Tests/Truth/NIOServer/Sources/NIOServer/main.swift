// A server on SwiftNIO with one event loop: PORT. It answers a line with "ok"; `sleep SECONDS` and `spin SECONDS` block
// its loop for that time, `slow SECONDS` answers after it from a loop that is free.
import Glibc
import NIOCore
import NIOPosix

func now() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}

@inline(never) func plantedSleep(_ seconds: Double) { usleep(UInt32(1e6 * seconds)) }

@inline(never) func plantedSpin(_ seconds: Double) {
    let end = now() + seconds
    while now() < end {}
}

final class Answers: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let words = String(buffer: unwrapInboundIn(data)).split { $0 == " " || $0.isNewline }
        let seconds = words.dropFirst().first.flatMap { Double($0) } ?? 0
        switch words.first {
        case "sleep": plantedSleep(seconds)
        case "spin": plantedSpin(seconds)
        case "slow":
            let delay = TimeAmount.milliseconds(Int64(1e3 * seconds))
            context.eventLoop.assumeIsolated().scheduleTask(in: delay) { self.answer(context) }
            return
        default: break
        }
        answer(context)
    }

    private func answer(_ context: ChannelHandlerContext) {
        context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: "ok\n")), promise: nil)
    }
}

let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
let server = try ServerBootstrap(group: group)
    .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
    .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
            try channel.pipeline.syncOperations.addHandler(Answers())
        }
    }
    .bind(host: "127.0.0.1", port: Int(CommandLine.arguments[1])!).wait()
try server.closeFuture.wait()
