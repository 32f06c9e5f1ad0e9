// Readiness of a descriptor as a sequence, for async code.

extension EventRunLoop {
    /// The moments at which a descriptor is ready.
    ///
    ///     for try await events in loop.readiness(of: socket) {
    ///         guard read(socket, &buffer, buffer.count) > 0 else { break }
    ///     }
    ///
    /// The loop watches the descriptor only while the next element is awaited, so a slow reader costs nothing. It never
    /// reads or writes. Keep the descriptor open until the iteration has ended.
    public func readiness(
        of descriptor: CInt, for events: DescriptorEvents = .readable,
        inMode mode: LoopMode = .common
    ) -> DescriptorReadiness {
        DescriptorReadiness(loop: self, descriptor: descriptor, events: events, mode: mode)
    }
}

/// The result of ``EventRunLoop/readiness(of:for:inMode:)``. It never ends by itself.
public struct DescriptorReadiness: AsyncSequence, Sendable {
    /// The events that the descriptor is ready for.
    public typealias Element = DescriptorEvents

    let loop: EventRunLoop
    let descriptor: CInt
    let events: DescriptorEvents
    let mode: LoopMode

    /// Begins an iteration.
    public func makeAsyncIterator() -> Iterator { Iterator(readiness: self) }

    /// Watches the descriptor while its next element is awaited.
    public struct Iterator: AsyncIteratorProtocol {
        let readiness: DescriptorReadiness

        /// The next moment at which the descriptor is ready.
        ///
        /// - Throws: ``LoopError/system(call:errno:)`` when the kernel cannot watch the descriptor; ``LoopError/stopped`` when the
        ///   loop's thread ends; `CancellationError`.
        public mutating func next() async throws -> DescriptorEvents? {
            let wait = LoopWait<DescriptorEvents>()
            return try await wait.value { [readiness] in
                let end = AtEnd { wait.end(throwing: LoopError.stopped) }
                let source = DescriptorSource(
                    descriptor: readiness.descriptor, events: readiness.events
                ) { source, events in
                    withExtendedLifetime(end) {
                        source.invalidate()
                        wait.end { events }
                    }
                }
                do throws(LoopError) {
                    guard try readiness.loop.add(source, toMode: readiness.mode) else { return nil }
                } catch {
                    wait.end(throwing: error)
                }
                return { [weak source] in source?.invalidate() }
            }
        }
    }
}
