import Hummingbird
import StallAgent

/// Labels a request's task with its route, so that the report of a stall names the request, also while the body of the
/// answer is written.
struct StallActivityMiddleware<Context: RequestContext>: RouterMiddleware {
    let monitor: StallMonitor

    func handle(
        _ request: Request, context: Context,
        next: (Request, Context) async throws -> Response
    ) async throws -> Response {
        let label = "\(request.method) \(context.endpointPath ?? request.uri.path)"
        var response = try await monitor.withTaskActivity(label) {
            try await next(request, context)
        }
        // The body is written when this has returned.
        let body = response.body
        response.body = ResponseBody(contentLength: body.contentLength) { [monitor] writer in
            try await monitor.withTaskActivity(label) { [writer] in try await body.write(writer) }
        }
        return response
    }
}
