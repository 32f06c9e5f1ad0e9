"""The packed lists and content hashes of a store, from docs/schema.md alone."""

MASK = (1 << 64) - 1


def leb128(*numbers):
    out = bytearray()
    for number in numbers:
        while True:
            byte, number = number & 0x7F, number >> 7
            out.append(byte | (0x80 if number else 0))
            if not number:
                break
    return bytes(out)


class ContentHash:
    """FNV-1a over framed fields, then the finalizer of MurmurHash3."""

    def __init__(self):
        self.state = 0xCBF29CE484222325

    def _mix(self, data):
        state = self.state
        for byte in data:
            state = ((state ^ byte) * 0x100000001B3) & MASK
        self.state = state

    def number(self, value):
        self._mix((value & MASK).to_bytes(8, "little"))
        return self

    def data(self, value):
        self._mix(value)
        return self.number(len(value))

    def text(self, value):
        return self.number(MASK) if value is None else self.data(value.encode())

    def value(self):
        value = self.state
        value = ((value ^ value >> 33) * 0xFF51AFD7ED558CCD) & MASK
        value = ((value ^ value >> 33) * 0xC4CEB9FE1A85EC53) & MASK
        value ^= value >> 33
        return value - (1 << 64) if value >> 63 else value


def image_hash(path, build_id):
    return ContentHash().text(path).data(build_id).data(b"").value()


def location_hash(image, offset, kind):
    return ContentHash().number(image).number(offset).number(kind).value()


def function_hash(name):
    return ContentHash().text(name).text(None).text(None).value()


def stack_hash(locations, is_truncated):
    hashed = ContentHash().number(1 if is_truncated else 0)
    for location in locations:
        hashed.number(location).number(0)
    return hashed.value()


def samples(stack, duration_ns, thread):
    """Two samples of one stack, whose weights follow from when they were taken; in half of the processes as programs
    before schema version 17 wrote them."""
    first, second = duration_ns // 3, duration_ns // 2
    if thread % 2:
        return leb128(2 | 16 | 64, first, 1000, thread, stack, 2 | 8 | 16 | 64, second, 1000, stack)
    return leb128(9, 2 | 16, zigzag(first), 1000, thread, stack, 2 | 8 | 16 | 64, zigzag(second - 3 * first), 1000)


def zigzag(number):
    return 2 * number if number >= 0 else -2 * number - 1


def lengths(counts):
    """The histogram of iteration lengths: each bucket as its distance from the one before, the first from bucket 0."""
    out, before = b"", 0
    for bucket in sorted(counts):
        out += leb128(bucket - before, counts[bucket])
        before = bucket
    return out
