// The arguments of the command that a child of the fork server is to run: Swift keeps those that it has read once.

@_cdecl("hostile_set_arguments")
public func setArguments(
    _ count: Int32, _ words: UnsafePointer<UnsafeMutablePointer<CChar>?>
) {
    CommandLine.arguments = (0..<Int(count)).compactMap { words[$0].map { String(cString: $0) } }
}
