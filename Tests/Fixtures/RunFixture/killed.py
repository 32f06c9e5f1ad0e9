"""A program that is killed as soon as its stall is in the store of its first argument."""

import asyncio
import os
import signal
import sqlite3
import sys
import threading
import time


def is_recorded(store):
    try:
        database = sqlite3.connect(f"file:{store}?mode=ro", uri=True)
        return database.execute("select count(*) from report").fetchone()[0] > 0
    except sqlite3.Error:
        return False


def watch(store):
    while not is_recorded(store):
        time.sleep(0.001)
    os.kill(os.getpid(), signal.SIGKILL)


def load_settings():
    time.sleep(60)


async def main():
    await asyncio.sleep(0.2)
    threading.Thread(target=watch, args=[sys.argv[1]], daemon=True).start()
    load_settings()


asyncio.run(main())
