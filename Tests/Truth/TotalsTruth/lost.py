"""What `ingest --delete` removes is in the store: random mixes of stores, forks, lines, central stores, prunes and lines of
later versions. Each row of each file that is gone is looked up by what it is of: nothing here relies on a number of the
store's.

The keys are those of docs/schema.md. Pruned reports are in roll-ups only, where they count."""

import collections
import copy
import os
import random
import shutil
import sqlite3

import fleet
import truth as truths

LATER = '{"schema":"stallctl.report/2"}\n'
# Each kind of row, by what it is of, and what must not be less in the store.
LOOP = ("(select hex(uuid) || ' ' || name || ' ' || threshold_ns from loop "
        "join process_run on process_run.id = loop.run where loop.id = {0}.loop)")
RUN = "(select hex(uuid) from process_run where process_run.id = {0}.run)"
KINDS = {
    "report": "select hex(id), duration_ns from report",
    "exposure": f"select {LOOP.format('exposure')} || ' ' || start_us, watched_ns from exposure",
    "suppression": f"select {LOOP.format('suppression')} || ' ' || place || ' ' || reason, stall_count from suppression",
    "loss": f"select {RUN.format('loss')} || ' ' || reason, report_count from loss",
    "name": "select location.hash, location.detail from location where detail > 0",
    "image": f"select {RUN.format('image_load')} || ' ' || image.hash, 0 from image_load join image on image.id = image_load.image",
    "run": "select hex(uuid), 0 from process_run where id in (select run from loop union select run from loss)",
}
# Of these `prune` may let go what no report needs.
OF_REPORTS = ("report", "name", "image", "run", "loss")


class Rows:
    """The rows of a file."""

    def __init__(self, path):
        database = sqlite3.connect(path)
        self.kinds = {}
        for kind, query in KINDS.items():
            rows = self.kinds[kind] = {}
            for key, size in database.execute(query):
                rows[key] = max(size, rows.get(key, size))
        self.starts = dict(database.execute("select hex(id), start_us from report"))
        rolled_up = database.execute("select ifnull(sum(report_count), 0) from rollup where day_count = 1").fetchone()[0]
        self.rolled_up = max(0, rolled_up - len(self.kinds["report"]))
        self.first_us = min([*self.starts.values(), 2**62])
        database.close()


class Play:
    def __init__(self, life, seed):
        self.life, self.draw = life, random.Random(seed)
        self.folder = os.path.join(life.folder, f"lost{seed}")
        for name in ("in", "saved", "work"):
            os.makedirs(os.path.join(self.folder, name))
        self.central = life.central(f"lost{seed}-central")
        self.stores = fleet.make_fleet(seed, 6, os.path.join(self.folder, "work"))
        for store in self.stores:
            store.write(life.template)
        # The cut of the latest prune, and the rows of each file that was sent in.
        self.cut, self.sent, self.prunes = None, {}, seed % 2 == 0

    def send(self, path, rows=None, suffix=".sqlite"):
        name = f"{len(self.sent):03}{suffix}"
        shutil.copyfile(path, os.path.join(self.folder, "in", name))
        self.sent[name] = rows or Rows(path)

    def step(self):
        draw, store = self.draw, self.draw.choice(self.stores)
        move = draw.choice(["go on", "go on", "store", "store", "fork", "lines", "lines", "central", "prune", "ingest"])
        if move == "go on":
            store.go_on()
            if draw.random() < 0.5:
                store.start_run()
            store.write(self.life.template)
        elif move == "store":
            self.send(store.path)
        elif move == "fork" and len(self.stores) < 10:
            fork = copy.deepcopy(store)
            fork.path = store.path.replace(".sqlite", f"-{len(self.stores)}.sqlite")
            fork.random = random.Random(draw.random())
            # What the two have of their own may be no report.
            for way in (store, fork):
                way.start_run()
                if draw.random() < 0.7:
                    way.add_report()
                way.write(self.life.template)
            self.stores.append(fork)
        elif move == "lines":
            self.send_lines(store)
        elif move == "central":
            self.send_central()
        elif move == "prune" and self.prunes and os.path.exists(self.central.path):
            cut = fleet.FIRST_US + draw.randrange(fleet.DAYS) * fleet.DAY_US
            self.central.run("prune", "--store", self.central.path, "--older-than", truths.rfc3339(cut))
            self.cut = max(cut, self.cut or cut)
        elif move == "ingest":
            self.ingest()

    def lines(self, store):
        path = f"{store.path}.jsonl"
        with open(path, "w", encoding="utf-8") as out:
            lines = self.central.run("export", "--store", store.path, "--format", "jsonl", "--rows", "all").splitlines(True)
            self.draw.shuffle(lines)
            if self.draw.random() < 0.3:
                lines.append(LATER)
            out.writelines(lines)
        return path

    def send_lines(self, store):
        self.send(self.lines(store), Rows(store.path), ".jsonl")

    def send_central(self):
        """A store of some stores, or of lines, perhaps pruned."""
        other = self.life.central(os.path.join(self.folder, "work", f"central{len(self.sent)}"))
        some = self.draw.sample(self.stores, self.draw.randint(1, 3))
        other.ingest(*(self.lines(store) if self.draw.random() < 0.4 else store.path for store in some))
        if self.draw.random() < 0.3:
            cut = fleet.FIRST_US + self.draw.randrange(fleet.DAYS) * fleet.DAY_US
            other.run("prune", "--store", other.path, "--older-than", truths.rfc3339(cut))
        self.send(other.path)

    def ingest(self):
        self.central.run("ingest", "--store", self.central.path, "--delete", os.path.join(self.folder, "in"), codes=(0, 1))

    def removed(self):
        return [name for name in self.sent if not os.path.exists(os.path.join(self.folder, "in", name))]

    def lost(self):
        """Rows of removed files that the store does not have, by kind."""
        held, lost, reports = Rows(self.central.path), collections.Counter(), set()
        for name in self.removed():
            rows = self.sent[name]
            reports.update(rows.starts)
            lost["roll-up"] += rows.rolled_up
            for kind, keys in rows.kinds.items():
                missing = [key for key, size in keys.items() if held.kinds[kind].get(key, -1) < size]
                if kind == "report":
                    missing = [key for key in missing if self.cut is None or rows.starts[key] >= self.cut]
                elif kind in OF_REPORTS and self.cut is not None:
                    missing = [key for key in missing if key in held.kinds[kind]]
                lost[kind] += len(missing)
        # Pruned reports are counted.
        lost["pruned report"] = max(0, len(reports) - len(held.starts) - held.rolled_up)
        return lost


def play(life, seed, count, has_later_loss=False):
    """The files that were removed, and the rows of them that are lost."""
    removed, lost = 0, collections.Counter()
    for number in range(count):
        one = Play(life, seed * 1000 + number)
        for _ in range(40):
            one.step()
        one.ingest()
        if has_later_loss and number == 0:
            sabotage(one.central.path)
        removed += len(one.removed())
        lost += one.lost()
    for kind, rows in sorted(lost.items()):
        print(f"lost: {kind}: {rows}")
    return removed, sum(lost.values())


def sabotage(path):
    """Deletes the newest stretch of watched time."""
    database = sqlite3.connect(path)
    database.execute("delete from exposure where start_us = (select max(start_us) from exposure)")
    database.commit()
    database.close()
