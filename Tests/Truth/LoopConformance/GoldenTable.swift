// The golden table: the trace of the real CFRunLoop (toolchain's Foundation, Linux), recorded by `conformance
// --record`. A scenario passes if our trace, the real loop's trace of the same run, and this one agree.

enum GoldenTable {
    static let traces: [String: String] = [
        "E1": "=finished@0 =finished@0 =finished@0",
        "E2": "=finished@0",
        "E3": "E T S W A X =timedOut@50",
        "S1": "E T S src0 X =handledSource@0",
        "S2": "E T S src0 T S W A X =timedOut@50",
        "S3": "E T S X =timedOut@0 E T S X =timedOut@0",
        "S4": "E T S src0 X =timedOut@0 E T S src0 X =handledSource@0",
        "S5": "E T S W signal A X =timedOut@150 // E T S src0@150 X =handledSource@0",
        "S6": "E T S W A T S src0@40 X =handledSource@40",
        "S7":
            "E T S order-5 d0 c0 order5 X =timedOut@0 // E T S order-5 X =handledSource@0 "
            + "E T S c0 X =handledSource@0 E T S order5 X =handledSource@0",
        "S8": "E T S src0 T S src0 T S src0 T S W A X =timedOut@50",
        "S9":
            "schedule(default) cancel(default) // schedule(c2) schedule(default) // "
            + "schedule(c3) // cancel(c2) cancel(c3) cancel(default) valid=false",
        "S10": "signalled=true E T S src0 X =timedOut@0",
        "S11": "E T S a(removes_b) b X =timedOut@0 // E T S c(invalidates_d) X =timedOut@0",
        "S12": "E T S X =timedOut@0 signalled=true b =timedOut@0",
        "T1": "E T S W A tmr@40 X =finished@40 valid=false",
        "T2": "E T S W A tmr@40 T S W A X =timedOut@100",
        "T3":
            "// E T S W A X =timedOut@80 // comT comT comT =timedOut@60 // defT defT "
            + "=timedOut@20",
        "T4": "f@20 f@100 f@120 f@140 =finished@140",
        "T5": "E T S W A first second late T S W A added-in-cb X =finished@0",
        "T6":
            "E T S W A a(invalidates_b,_removes_c) T S W A T S W A X =timedOut@50 "
            + "b.valid=false c.valid=true",
        "T7": "f@20 f@120 f@120 f@170 =finished@170",
        "T8": "tol100@40 tol0@80 =finished@80 // half=false negative=0.0",
        "T9": "E T S W add A tmr@60 T S W A X =timedOut@120",
        "T10": "E T S W A T S W A tmr@50 T S W A X =timedOut@100",
        "T11": "E T S W A outer1{ E T S W A X =timedOut@70 } T S W A X =timedOut@120",
        "T12": "f@20 f@40 =timedOut@50 // // f@150 f@160 f@180 f@200 =timedOut@60",
        "T13": "interval=0.0 f =finished@20 tiny=1e-09",
        "B1": "E T S W posted A blk@120 X =timedOut@120",
        "B2": "E T S W A blk@40 T S W A X =timedOut@120",
        "B3":
            "E T S blk W A X =timedOut@50 // E T S blk W A X =timedOut@50 // E T S blk X "
            + "=timedOut@0",
        "B4": "E T S b1 W A b2@50 X =timedOut@50 // E T S b1 W A b2 T S W A X =timedOut@50",
        "B5": "d1 c1 md =timedOut@0 // m1 m2 m3 m4 =timedOut@0",
        "B6": "E T S blk1 src0 blkFromSrc X =handledSource@0",
        "B7": "E T S W A tmr blkFromTmr T S W A X =timedOut@50",
        "B8":
            "W(post) blkFromW@40 =timedOut@40 // E T S idle1 W A T S idle2 W A T S idle3 W "
            + "A T S idle-done W A X =timedOut@40",
        "B9": "E T S r0 W A r1 T S r2 W A r3 T S W A X =timedOut@30",
        "B10":
            "E T S blk(E) blk(T) blk(S) W A blk(A) X =timedOut@20 // E T S blk(X) W A X "
            + "=timedOut@20",
        "X1": "E T S W A tmr(stop) after-stop X =stopped@20",
        "X2": "E T S W A X =stopped@30",
        "X3": "E T S W A X =timedOut@40",
        "X4": "E T S outer{ E T S stop W A X =stopped@0 } W A X =timedOut@50",
        "X5":
            "E T S stop-in-block W A X =stopped@0 // E T S W A X =stopped@0 // E X "
            + "=stopped@0 // E T S W A T S W A X =timedOut@20 E T S W A X =timedOut@20",
        "X6": "E T S src0(stop) X =handledSource@0 // E T S W A X =timedOut@30",
        "X7": "tmr@20 tmr@40 tmr@60 stop returned@60",
        "N1":
            "mode=nil E T S src0[default]{ E T S W A X =timedOut@20 }[default] X "
            + "=handledSource@20 mode=nil",
        "N2":
            "o.E p.E o.T { p.E p.T p.S p.W p.A p.X =timedOut@20 } p.T o.S p.S o.W p.W o.A "
            + "p.A o.X p.X =timedOut@40",
        "N3": "b1{ =timedOut@0 } b2 b3 =timedOut@0",
        "N4": "E T S s{ E T S s2 X =timedOut@0 } X =timedOut@0",
        "N5": "a{ b =timedOut@20 } =timedOut@40",
        "N6": "outer{ =stopped@30 } =timedOut@80",
        "O1": "#2(-5) #0(0) #3(0) #1(5) #4(2000000) =timedOut@0",
        "O2": "once:E valid=true =timedOut@0 valid=false =timedOut@0",
        "O3": "a.T b.T a.S d.S =timedOut@0",
        "O4": "E X =timedOut@0 =timedOut@0 // added-to-other=false",
        "O5": "E{ } E T S W A tmr-added-in-E T S W A X(once) X =timedOut@30",
        "P1": "E T S W A src1(empty)@30 X =handledSource@30 // E T S W A X =timedOut@30",
        "P2": "E T S W A port0 T S W A port1 T S W A port2 T S W A X =timedOut@40",
        "P3": "E T S W A pipe(IJKL) X =handledSource@0",
        "P4": "E T S blk src0 tmr T S W A port T S W A X =timedOut@40",
        "P5": "port =handledSource@0 // E T S W A X =timedOut@20 // E T S W A X =timedOut@20",
        "W1": "E T S W A T S W A T S W A X =timedOut@70",
        "W2": "E T S W A X =timedOut@40",
        "W3": "E T S W invalidated wakeup A X =finished@50",
        "W4": "=timedOut@40 asleep=true callout=false after=false",
        "W5":
            "E T S W A X =timedOut@10 // E T S W A X =timedOut@30 // E T S W A X "
            + "=timedOut@10 E T S W A X =timedOut@30",
        "W6":
            "E T S W A tmr(wake) T S W A X =timedOut@50 // E T S W A X =timedOut@30 // E T "
            + "S W A T S W A X =timedOut@30",
        "G1":
            "E T S W A gcd1 gcd2 T S W A gcd3 T S W A X =timedOut@40 // E T S W A gcd X "
            + "=handledSource@0",
        "G2":
            "E T S W A gcd{ E T S INNER-BLK W A X =timedOut@50 } T S W A INNER-GCD@50 T S "
            + "W A X =timedOut@100",
        "G3": "=timedOut@40 // gcd =timedOut@20",
        "G4": "performBlock@10 gcdAsync@110",
        "G5": "gcdAsync@0 performBlock@10",
        "K1": "=finished@0 job@50 thread-exit@80",
        "K2": "schedule(default) thread-ends cancel(default) joined",
        "C1": "E T S src0(invalidates_itself) X =finished@0",
        "C2": "E T S W A tmr(adds_source) T S src0 X =handledSource@20",
        "C3": "src0 =handledSource@30 // =timedOut@30 =timedOut@20",
        "C4": "E T S src0 tmr X =handledSource@0 // E T S W A X =timedOut@50",
    ]
}
