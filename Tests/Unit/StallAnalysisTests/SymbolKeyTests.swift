import StallAnalysis
import Testing

/// Goal: one function has one key, whatever the compiler and the demangler made of its name.
/// Method: names as real tools write them, with the key that the source calls for.
@Suite struct SymbolKeyTests {
    static let table: [(name: String, key: String)] = [
        (
            "(2) await resume partial function for function signature specialization <Arg[0] = Dead> of static app_r.App.main() async throws -> ()",
            "App.main()"
        ),
        ("static M.$main()", "M.main()"),
        (
            "generic specialization <Swift.String> of app_r.Cache.run(A) -> Swift.Int",
            "Cache.run(_:)"
        ),
        ("specialized Cache.run(_:)", "Cache.run(_:)"),
        ("protocol witness for Worker.run(_:) in conformance Cache<A>", "Cache.run(_:)"),
        (
            "protocol witness for app_d.Worker.run(Swift.Int) -> Swift.Int in conformance app_d.Cache<A> : app_d.Worker in app_d",
            "Cache.run(_:)"
        ),
        (
            "partial apply forwarder for closure #1 () -> Swift.Int in app_r.outer([Swift.Int]) -> Swift.Int",
            "closure in outer(_:)"
        ),
        (
            "closure #1 (Int, Int) -> Int in closure #1 () -> Int in app_d.outer(Swift.Int, at: Swift.Int) -> Swift.Int",
            "closure in outer(_:at:)"
        ),
        (
            "merged function signature specialization <Arg[1] = [Closure Propagated : closure #1 (A) -> B in f, Argument Types : [Swift.Int]]> of generic specialization <[Swift.String]> of (extension in Swift):Swift.Sequence.sorted(by: (A.Element, A.Element) throws -> Swift.Bool) throws -> [A.Element]",
            "Sequence.sorted(by:)"
        ),
        (
            "app_r.Model.big.modify : [Swift.Int] with unmangled suffix \".resume.0\"",
            "Model.big.accessor"
        ),
        (
            "closure #1 () -> app_d.Model in variable initialization expression of static app_d.Model.shared : app_d.Model",
            "closure in varinit in Model.shared"
        ),
        ("one-time initialization function for shared", "init shared"),
        ("app_d.Base.__deallocating_deinit", "Base.deinit"),
        ("@objc NSHostingView.layout()", "NSHostingView.layout()"),
        ("partial apply for thunk for @callee_guaranteed (@guaranteed Int) -> ()", "thunk"),
        ("outlined destroy of app_d.Model", "<swift-runtime>"),
        ("-[Foo(Debug) bar:baz:]", "-[Foo bar:baz:]"),
        ("__41-[Foo bar]_block_invoke_2.345", "block in -[Foo bar]"),
        ("std::vector<int, std::allocator<int> >::push_back(int&&)", "std::vector::push_back"),
        (
            "void ns::(anonymous namespace)::run<int>(std::function<void (int)>) const [clone .cold]",
            "ns::run"
        ),
        ("ns::Foo::operator<<(int) const", "ns::Foo::operator<<"),
        ("main::{lambda(int)#1}::operator()(int) const", "closure in main"),
        ("core::ptr::drop_in_place::h0123456789abcdef", "core::ptr::drop_in_place"),
        (
            "__gnu_cxx::__normal_iterator<int*, std::vector<int> > std::__unguarded_partition<int*>(int*, int*)",
            "std::__unguarded_partition"
        ),
        ("std::basic_string<char> ns::name[abi:cxx11](int)", "ns::name"),
        ("ns::T::operator bool() const", "ns::T::operator bool"),
        ("bool operator==<int>(ns::T<int> const&, ns::T<int> const&)", "operator=="),
        ("bool std::operator< <char, std::less<char> >(ns::S const&)", "std::operator<"),
        ("run()::$_0::operator()(int) const", "closure in run"),
        ("run()::'lambda'(int)::operator()(int) const", "closure in run"),
        ("app::main::{{closure}}::h0123456789abcdef", "closure in app::main"),
        ("compute.cold.1", "compute"),
        ("pthread_create@@GLIBC_2.34", "pthread_create"),
        ("static Cache.< infix(_:_:)", "Cache.< infix(_:_:)"),
        (
            "static app_d.Cache.< infix(app_d.Cache<A>, app_d.Cache<A>) -> Swift.Bool",
            "Cache.< infix(_:_:)"
        ),
        (
            "app_d.(Priv in _4D9DAE26A6EF027D89FDF1BE5F181A88).m(a: Swift.Int, _: (Swift.Int) -> Swift.Int) -> ()",
            "Priv.m(a:_:)"
        ),
        ("Priv.m(a:_:)", "Priv.m(a:_:)"),
        ("closure #1 in Suite.`a < b in c`()", "closure in Suite.`a < b in c`()"),
        (
            "default argument 1 of inner #1 (_:q:) in outer(_:)",
            "defaultarg inner(_:q:) in outer(_:)"
        ),
    ]

    @Test(arguments: table)
    func `a name has the key of its function`(name: String, key: String) {
        #expect(SymbolKey(name: name).text == key)
    }
}
