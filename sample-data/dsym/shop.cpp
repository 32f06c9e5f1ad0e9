// Built for arm64 and x86_64, with two units, calls inlined three deep and a name of Swift; README.md says how.
namespace shop {
template <class T> inline __attribute__((always_inline)) T twice(T x) {
    T y = x * 3;
    return y + 1;
}
struct Cart {
    int n;
    int total(int k);
    inline int half(int x) const { return twice(x) / 2 + n; }
};
}
#ifdef SECOND
int other(int a) {
    shop::Cart cart{a};
    return cart.total(shop::twice(a)) + cart.half(a);
}
#else
extern int other(int);
int __attribute__((noinline)) shop::Cart::total(int k) {
    int sum = 0;
    for (int i = 0; i < k; i++)
        sum += half(i) * n;
    return sum;
}
__attribute__((noinline)) int checkout(int a) __asm__("_$s4Shop8checkoutyS2iF");
int checkout(int a) {
    shop::Cart cart{a};
    return cart.total(a) ^ other(a);
}
int main(int count, char **) { return checkout(count) + other(count); }
#endif
