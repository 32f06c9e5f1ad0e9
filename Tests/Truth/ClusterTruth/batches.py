"""Batches of stores on their way into a cluster, each sent several times, while shards are killed."""

import os
import threading
import time


class Batches:
    def __init__(self, world, waits_for_insert):
        """waits_for_insert: kills a shard only once it inserts reports, for batches that take it long enough to be met there."""
        self.world, self.waits_for_insert = world, waits_for_insert
        self.kills = self.kills_in_inserts = self.refused = self.count = 0
        self.began = time.monotonic()

    def send(self, paths, wanted, is_killed):
        """Until it was said that all of it is in, as often as wanted, each time as if nothing had said so before."""
        self.count += 1
        began, times, refused = time.monotonic(), 0, 0
        known = self.positions()
        while times < wanted:
            if times > 0:
                self.forget_all_but(known)
            is_over = threading.Event()
            killer = None
            if is_killed and times == 0 and refused == 0:
                killer = threading.Thread(target=self.kill, args=[self.world.random.choice([1, 2]), is_over])
                killer.start()
            code = self.world.run(self.world.cluster.url, "ingest", *paths)
            is_over.set()
            if killer:
                killer.join()
            if code.returncode == 0:
                times += 1
            else:
                refused += 1
                if refused > 20:
                    raise SystemExit(f"ingest fails: {code.stderr.decode()}")
        self.refused += refused
        if self.waits_for_insert:
            print(f"sent: {len(paths)} stores {wanted} times in {time.monotonic() - began:.0f} s, {refused} times refused; load "
                  f"{os.getloadavg()[0]:.1f}", flush=True)

    def positions(self):
        return [row[0] for row in self.world.cluster.ask("select hex(store) from source final")]

    def forget_all_but(self, known):
        """The positions of what came since: as if no acknowledgement of it had arrived."""
        kept = ", ".join(f"unhex('{store}')" for store in known) or "''"
        for shard in (1, 2):
            self.world.cluster.ask(f"alter table source delete where store not in ({kept})", shard)
        for shard in (1, 2):
            while self.world.cluster.number("select count() from system.mutations where not is_done", shard):
                time.sleep(0.05)

    def kill(self, shard, is_over):
        """As a crash would, and starts it again."""
        patience = float("inf") if self.waits_for_insert else self.world.random.uniform(0.2, 1.5)
        # Sometimes longer than a copy is tried again.
        pause = self.world.random.choice([0.5, 20])
        end = time.monotonic() + patience
        while not is_over.is_set() and time.monotonic() < end:
            if self.world.cluster.number(
                    "select count() from system.processes where query like 'insert into report_local%'", shard):
                self.kills_in_inserts += 1
                break
            time.sleep(0.01)
        self.world.cluster.kill(shard)
        time.sleep(pause)
        self.world.cluster.start(shard)
        self.kills += 1

    def tell(self):
        print(f"ingested: {self.count} batches in {time.monotonic() - self.began:.1f} s; a shard was killed {self.kills} times, "
              f"{self.kills_in_inserts} of them while it inserted reports, and {self.refused} times ingest gave up and was run again",
              flush=True)
