"""initramfs.py FOLDER FILE: writes a folder as Linux's initramfs, without root and without cpio.

The format is "newc": Documentation/driver-api/early-userspace/buffer-format.rst."""

import os
import stat
import sys


def entries(folder):
    for parent, folders, files in os.walk(folder):
        for name in folders + files:
            path = os.path.join(parent, name)
            mode = os.lstat(path).st_mode
            if stat.S_ISLNK(mode):
                data = os.readlink(path).encode()
            elif stat.S_ISREG(mode):
                with open(path, "rb") as file:
                    data = file.read()
            else:
                data = b""
            yield os.path.relpath(path, folder), mode, data, (0, 0)
    yield "dev/console", stat.S_IFCHR | 0o600, b"", (5, 1)
    yield "TRAILER!!!", 0, b"", (0, 0)


def main():
    folder, out = sys.argv[1:]
    with open(out, "wb") as file:
        for number, (name, mode, data, device) in enumerate(entries(folder), 1):
            text = name.encode() + b"\0"
            fields = (number, mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(text), 0)
            header = b"070701" + b"".join(b"%08X" % field for field in fields) + text
            file.write(header + b"\0" * (-len(header) % 4) + data + b"\0" * (-len(data) % 4))


main()
