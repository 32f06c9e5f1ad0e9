// Programs in C that several suites build, each with options of its own.

/// Sources of small programs.
package enum CProgram {
    /// Calls that a compiler inlines three deep. With `-DOTHER` it is another program with the same functions.
    package static let inlinedCalls = """
        #include <stdio.h>
        #include <stdlib.h>
        #ifdef OTHER
        int other = 1;
        #endif
        static inline __attribute__((always_inline)) int inner(int x) {
            int y = rand() * x;
            return y % 7 + x;
        }
        static inline __attribute__((always_inline)) int middle(int x) {
            int sum = 0;
            for (int i = 0; i < x; i++)
                sum += inner(i) * inner(x - i);
            return sum;
        }
        __attribute__((noinline)) int outer(int x) {
            puts("outer");
            return middle(x) + middle(x + 1);
        }
        int main(int argc, char **argv) {
            return outer(argc) + inner(argc);
        }
        """
}
