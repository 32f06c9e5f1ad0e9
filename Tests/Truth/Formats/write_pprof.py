"""Writes profile.proto for examples; shares no code with the package."""


def varint(number):
    number %= 1 << 64
    made = b""
    while number > 127:
        made += bytes([number & 127 | 128])
        number >>= 7
    return made + bytes([number])


def num(field, number):
    return varint(field << 3) + varint(number)


def msg(field, data):
    data = data.encode() if isinstance(data, str) else data
    return varint(field << 3 | 2) + varint(len(data)) + data


def packed(field, values):
    return msg(field, b"".join(map(varint, values)))


class Profile:
    def __init__(self):
        self.strings = [""]

    def text(self, string):
        if string not in self.strings:
            self.strings.append(string)
        return self.strings.index(string)

    def type(self, field, type, unit):
        return msg(field, num(1, self.text(type)) + num(2, self.text(unit)))

    def mapping(self, id, start, limit, offset, path, build):
        return msg(3, num(1, id) + num(2, start) + num(3, limit) + num(4, offset) + num(5, self.text(path)) + num(6, self.text(build)))

    def function(self, id, name, raw="", file=""):
        return msg(5, num(1, id) + num(2, self.text(name)) + num(3, self.text(raw)) + num(4, self.text(file)) + num(5, 12))

    def location(self, id, mapping, address, *lines):
        return msg(4, num(1, id) + num(2, mapping) + num(3, address) + b"".join(msg(4, num(1, f) + num(2, n)) for f, n in lines))

    def label(self, key, value):
        return msg(3, num(1, self.text(key)) + (num(2, self.text(value)) if isinstance(value, str) else num(3, value)))

    def table(self):
        return b"".join(msg(6, string) for string in self.strings)


def examples():
    p = Profile()
    yield "pprof-go.pb", (
        p.type(1, "samples", "count") + p.type(1, "cpu", "nanoseconds")
        + msg(2, packed(1, [1, 2, 3]) + packed(2, [3, 30000000]))
        + msg(2, packed(1, [2, 3]) + packed(2, [1, 10000000]))
        + msg(2, packed(1, [1, 2, 3]) + packed(2, [1, 10000000]))
        + msg(2, packed(1, [4, 5, 6, 9]) + packed(2, [2, 20000000]))
        + p.mapping(1, 0x400000, 0x500000, 0x1000, "/srv/bin/server", "FfEe00112233")
        + p.mapping(2, 0x7F0000001000, 0x7F0000009000, 0x26000, "/lib/libc.so.6", "go/build-id")
        + p.location(1, 1, 0x401234, (1, 12), (2, 40)) + p.location(2, 1, 0x402000, (3, 7)) + p.location(3, 1, 0x4FFFFF, (4, 0))
        + p.location(4, 2, 0x7F0000001234) + p.location(5, 2, 0x1234, (5, -3)) + p.location(6, 0, 0xABCDEF)
        + p.function(1, "strings.Index", "strings.Index", "/go/strings.go") + p.function(2, "main.find", "main.find", "/src/main.go")
        + p.function(3, "Library.wait()", "$s4Main7LibraryC4waityyF", "/src/l.swift") + p.function(4, "main.main", "main.main")
        + p.function(5, "", "raw_name", "x.c")
        + p.table() + num(9, 1795166071204567890) + num(10, 10_000_000_000) + p.type(11, "cpu", "nanoseconds") + num(12, 10000000))

    p = Profile()
    p.text("wall-time")
    yield "pprof-threads.pb", (
        p.type(1, "cpu-time", "nanoseconds") + p.type(1, "wall-time", "nanoseconds") + p.type(1, "alloc-space", "bytes")
        # Not packed, and the labels before.
        + msg(2, p.label("thread id", 4242) + p.label("thread name", "MainThread") + num(1, 1) + num(1, 2) + num(2, 5) + num(2, 700) + num(2, 1))
        + msg(2, packed(1, [2]) + packed(2, [5, 300, 1]) + p.label("thread id", "4243") + p.label("thread name", "worker") + p.label("version", "v2"))
        + msg(2, packed(1, [1]) + packed(2, [5, 300, 1]) + p.label("thread id", 1 << 40) + p.label("thread name", "größe"))
        + msg(2, packed(1, [1, 2]) + packed(2, [5, 300, 1]) + p.label("thread id", 4242) + p.label("thread name", "MainThread"))
        + msg(2, packed(1, [1, 2]) + packed(2, [5, -300, 1])) + msg(2, packed(1, [1, 2]) + packed(2, [5]))
        + msg(2, packed(1, []) + packed(2, [0, 9, 0]) + p.label("pid", 77) + p.label("bytes", 99))
        + p.location(1, 0, 0, (1, 5)) + p.location(2, 0, 0, (2, 1 << 62))
        + p.function(1, "handle", "", "/app/views.py") + p.function(2, "<module>", "", "/app/wsgi.py")
        + p.table() + num(14, 1) + num(9, -5) + num(10, -1) + num(15, 3) + packed(13, [1, 2]))

    p = Profile()
    body = (
        p.type(1, "samples", "count") + p.mapping(1, 0, 0, 0, "[vdso]", "00") + p.location(1, 1, 5) + p.location(1, 1, 6)
        + msg(4, b"") + msg(2, packed(1, [1, 0, 7]) + packed(2, [1 << 62])) + msg(2, packed(1, [1, 0, 7]) + packed(2, [(1 << 62) - 1]))
        + msg(5, b"\x09\x01\x02\x03\x04\x05\x06\x07\x08\x15\x01\x02\x03\x04") + p.table())
    yield "pprof-odd.pb", body
    yield "pprof-cut-off.pb", body[:-3]
    p = Profile()
    yield "pprof-no-samples.pb", p.type(1, "samples", "count") + p.table()


if __name__ == "__main__":
    import os
    import sys
    for name, data in examples():
        with open(os.path.join(sys.argv[1], name), "wb") as file:
            file.write(data)
