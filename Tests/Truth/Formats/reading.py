"""Reports as lines of text, as `format-truth` and ForeignFormatsTests print them, for oracles that share no code with these."""
from dataclasses import dataclass, field
from typing import Optional

MASK = (1 << 64) - 1


def content_hash(*texts):
    """StallModel's ContentHash of texts that may be missing: FNV-1a, each with its length, and MurmurHash3's finalizer."""
    state = 0xCBF29CE484222325

    def mix(data):
        nonlocal state
        for byte in data:
            state = ((state ^ byte) * 0x100000001B3) & MASK

    for text in texts:
        data = b"" if text is None else text.encode()
        mix(data)
        mix((MASK if text is None else len(data)).to_bytes(8, "little"))
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        state = ((state ^ state >> 33) * factor) & MASK
    return "%016x" % (state ^ state >> 33)


def seconds(nanoseconds):
    """Swift's description of a Duration."""
    return f"{float(nanoseconds * 10**9) / 1e18} seconds"


@dataclass
class Frame:
    function: Optional[str] = None
    image: Optional[str] = None
    build: Optional[str] = None
    offset: Optional[int] = None
    file: Optional[str] = None
    line: Optional[int] = None
    inlined: bool = False
    kind: str = "return_address"

    def text(self):
        image, build, offset = self.image, self.build, self.offset
        if offset is None:
            # A name in place of an address.
            image, offset = image or "(unknown)", self.line or 0
            build = content_hash(self.function, self.file)
        place = f" {self.file}:{self.line or 0}" if self.file else ""
        kind = "inlined" if self.inlined else self.kind
        return f"    {kind} {self.function or '-'} {image or '-'}+0x{offset:x} {build or '-'}{place}\n"


@dataclass
class Sample:
    frames: list
    count: int = 1
    offset: int = 0


@dataclass
class Thread:
    number: int
    name: Optional[str] = None
    is_main: bool = False
    samples: list = field(default_factory=list)


@dataclass
class Report:
    threads: list
    stalled: int = 0
    verdict: str = "stalled"
    app: str = ""
    version: str = ""
    host: str = ""
    pid: int = 0
    start: int = 0
    duration: int = 0
    state: str = "ended"
    os: Optional[str] = None
    device: Optional[str] = None

    def text(self):
        thread = self.threads[self.stalled]
        loop = "main" if thread.is_main else thread.name or f"thread {thread.number}"
        lines = (
            f"{self.verdict} app={self.app} version={self.version} host={self.host} pid={self.pid} start={self.start} "
            f"duration={seconds(self.duration)} state={self.state} loop={loop}"
            f"{f' os={self.os}' if self.os else ''}{f' device={self.device}' if self.device else ''}\n"
        )
        total = sum(sample.count for sample in thread.samples)
        ends = [0]
        for sample in thread.samples:
            ends.append(ends[-1] + sample.count)
            weight = (2 * self.duration * ends[-1] + total) // (2 * total) - (2 * self.duration * ends[-2] + total) // (2 * total)
            lines += f"  thread {thread.number} weight={seconds(weight)} offset={seconds(min(sample.offset, self.duration))}\n"
            lines += "".join(frame.text() for frame in sample.frames)
        for index, other in enumerate(self.threads):
            if index != self.stalled:
                lines += f"  thread {other.number} name={other.name or '-'}\n"
                heaviest = max(other.samples, key=lambda sample: sample.count, default=None)
                lines += "".join(frame.text() for frame in heaviest.frames) if heaviest else ""
        return lines
