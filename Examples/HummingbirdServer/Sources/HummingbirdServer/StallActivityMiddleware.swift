import Hummingbird
import StallAgent

/// Labels a request's task with its route, so that the report of a stall names the request.
struct StallActivityMiddleware<Context: RequestContext>: RouterMiddleware {
    let monitor: StallMonitor

    func handle(
        _ request: Request, context: Context,
        next: (Request, Context) async throws -> Response
    ) async throws -> Response {
        try await monitor.withTaskActivity(
            "\(request.method) \(context.endpointPath ?? request.uri.path)"
        ) {
            try await next(request, context)
        }
    }
}
