import Testing

@testable import StallSymbols

/// Goal: functions that a linker folded are told from aliases of one. Method: the names of one address, as symbol tables of
/// real programs have them; `?` ends a weak name, `*` an indirect one.
@Suite struct FunctionNamesTests {
    private func areFolded(_ text: String, areAll: Bool = true) -> Bool {
        text.split(separator: " ").map { name in
            FunctionName(
                text: String(name.prefix { !"?*".contains($0) }), isWeak: name.hasSuffix("?"),
                isIndirect: name.hasSuffix("*"))
        }.areFolded(areAll: areAll)
    }

    @Test(arguments: [
        "load load_orders", "_handle_get _handle_post", "_audit read_users write_users",
        "hook_before? hook_after?", "load_orders _Z14load_customersi",
        "load_orders _Z7convertIiEii?", "load_orders? _Z7convertIiEii?",
        "_ZN4shop9open_doorEi _ZN4bank9open_doorEi", "_ZN1AD0Ev? _ZN1BD0Ev?",
        "_loop0_1_rule _loop0_2_rule", "load save __audit",
        // A folded function that has a second name besides.
        "rec rec.localalias crec", "pay pay@@V2 bill",
    ])
    func `functions with one address are folded`(names: String) {
        #expect(areFolded(names))
        let isOfMangled = names.split(separator: " ").allSatisfy { $0.hasPrefix("_Z") }
        #expect(areFolded(names, areAll: false) == isOfMangled)
    }

    @Test(arguments: [
        "single", "poll __poll", "__GI___poll __poll poll?", "ring telephone?",
        "pay_v2 pay@@V2", "pay@V1 pay@@V2", "rec rec.localalias",
        "_ZN1A4walkEii _ZN1A4walkEii.localalias", "_ZN1AC1Ei _ZN1AC2Ei",
        "scipy_spotrf2_ spotrf2_.localalias",
        "preadv2 preadv64v2", "pwritev2 pwritev64v2", "pread pread64 __pread64?",
        "__frexp frexp? frexpf32x frexpf64", "__GI_strlen strlen* strlen_ifunc",
        "wcsrchr* wcsrchr_ifunc", "_ZGVbN2v_acos* _ZGVbN2v_acos_ifunc __GI__ZGVbN2v_acos",
        "_ZN1A4walkEii load?", "_ZN1A4walkEii __walk",
    ])
    func `aliases of one function are not`(names: String) { #expect(!areFolded(names)) }
}
