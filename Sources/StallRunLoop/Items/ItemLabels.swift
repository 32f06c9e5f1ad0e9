// Names that an app gives to its items, for the dump. Kept apart from the items: few have one, and a timer has no room
// to spare.

internal import Synchronization

enum ItemLabels {
    private static let labels = Locked<[ObjectIdentifier: String]>([:])

    static func set(_ label: String?, of item: AnyObject) {
        labels.withLock { $0[ObjectIdentifier(item)] = label }
    }

    static func label(of item: AnyObject) -> String? {
        labels.withLock { $0[ObjectIdentifier(item)] }
    }
}

extension LoopTimer {
    /// Its name in the loop's dump, beside when it is due; nil unless set. Any thread may set it.
    public var label: String? {
        get { isLabelled.load(ordering: .acquiring) ? ItemLabels.label(of: self) : nil }
        set {
            ItemLabels.set(newValue, of: self)
            isLabelled.store(newValue != nil, ordering: .releasing)
        }
    }
}

extension LoopSource {
    /// Its name in the loop's dump; nil unless set. Any thread may set it.
    public var label: String? {
        get { isLabelled.load(ordering: .acquiring) ? ItemLabels.label(of: self) : nil }
        set {
            ItemLabels.set(newValue, of: self)
            isLabelled.store(newValue != nil, ordering: .releasing)
        }
    }
}

extension LoopObserver {
    /// Its name in the loop's dump; nil unless set. Any thread may set it.
    public var label: String? {
        get { isLabelled.load(ordering: .acquiring) ? ItemLabels.label(of: self) : nil }
        set {
            ItemLabels.set(newValue, of: self)
            isLabelled.store(newValue != nil, ordering: .releasing)
        }
    }
}

extension DescriptorSource {
    /// Its name in the loop's dump; nil unless set. Any thread may set it.
    public var label: String? {
        get { isLabelled.load(ordering: .acquiring) ? ItemLabels.label(of: self) : nil }
        set {
            ItemLabels.set(newValue, of: self)
            isLabelled.store(newValue != nil, ordering: .releasing)
        }
    }
}
