// The functions at some addresses, and the choice among several names of one.

/// The name of a function, and whether the linker folded functions with other names into it.
struct NamedSymbol {
    var name: String
    var isFolded: Bool
    /// Its address as linked.
    var start: UInt64
}

/// The functions at some addresses.
struct NamedSymbols {
    var named: [UInt64: NamedSymbol] = [:]
    /// Code without a symbol in a file that has one for every other function, the local ones included: optimizers
    /// make such bodies of functions that they merge.
    var merged: Set<UInt64> = []
}

/// One of the names of an address.
struct CandidateName {
    var name: FunctionName
    var isLocal: Bool
}

extension [CandidateName] {
    /// Aliases of one function differ only in prefixes (`poll`, `__poll`): the plainest exported name wins.
    ///
    /// - Parameter areAll: The names are of a full symbol table.
    func best(start: UInt64, areAll: Bool) -> NamedSymbol? {
        func rank(_ one: CandidateName) -> (Int, Int, String) {
            let order = (one.name.isSecondary ? 2 : 0) + (one.isLocal ? 1 : 0)
            return (order, one.name.text.plainness, one.name.text)
        }
        return self.min { rank($0) < rank($1) }.map { best in
            NamedSymbol(
                name: best.name.text, isFolded: map(\.name).areFolded(areAll: areAll), start: start)
        }
    }
}

extension String {
    /// Lower for plainer names: leading underscores mark internal names.
    fileprivate var plainness: Int { prefix { $0 == "_" }.count << 16 + utf8.count }
}
