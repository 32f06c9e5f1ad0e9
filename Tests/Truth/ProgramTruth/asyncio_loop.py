"""asyncio, with planted stalls: PLANTS SECONDS-OF-IDLE. Each line it prints is a plant: its site, begin and end by the
monotonic clock."""

import asyncio
import hashlib
import os
import random
import subprocess
import sys
import threading
import time


def sleep():
    time.sleep(random.uniform(0.3, 0.6))


def compute():
    end = time.monotonic() + random.uniform(0.3, 0.6)
    while time.monotonic() < end:
        hashlib.pbkdf2_hmac("sha256", b"x", b"y", 20000)


def command():
    subprocess.run(["sleep", "%.2f" % random.uniform(0.3, 0.6)], capture_output=True)


def pipe():
    reading, writing = os.pipe()
    threading.Timer(random.uniform(0.3, 0.6), os.close, [writing]).start()
    os.read(reading, 1)
    os.close(reading)


async def serve(reader, writer):
    while data := await reader.read(100):
        writer.write(data)
    writer.close()


async def chat(port):
    """Healthy work beside the plants."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while True:
        writer.write(b"x" * 50)
        await reader.read(100)
        await asyncio.sleep(0.01)


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    task = asyncio.create_task(chat(server.sockets[0].getsockname()[1]))
    await asyncio.sleep(float(sys.argv[2]))
    for index in range(int(sys.argv[1])):
        await asyncio.sleep(random.uniform(0.3, 0.5))
        site = [sleep, compute, command, pipe][index % 4]
        begin = time.monotonic()
        site()
        print(site.__name__, begin, time.monotonic(), flush=True)
    await asyncio.sleep(0.5)
    task.cancel()


asyncio.run(main())
