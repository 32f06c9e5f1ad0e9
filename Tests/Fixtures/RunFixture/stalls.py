"""An asyncio program whose handlers block its loop: one sleeps, one computes, one waits below a C function."""

import asyncio
import time


class Handler:
    async def answer(self):
        time.sleep(0.4)  # line 9

    def compute(self):
        end = time.process_time() + 0.4
        number = 0
        while time.process_time() < end:  # line 14
            number += 1  # line 15
        return number


def by_key():
    def wait(value):
        time.sleep(0.4)  # line 21
        return value

    return sorted([1], key=wait)


async def main():
    await asyncio.sleep(0.2)
    await Handler().answer()
    await asyncio.sleep(0.2)
    Handler().compute()
    await asyncio.sleep(0.2)
    by_key()
    await asyncio.sleep(0.4)


asyncio.run(main())
