"""What works in a place, by the reports of programs that stall there: Victim, a C program, and a test that hangs.

A measurement knows nothing of what doctor does: only the words of its guarantees are doctor's."""

import json
import os
import signal
import subprocess
import time

# In the order of doctor's output.
GUARANTEES = ["blocked", "running", "undisturbed", "causes", "holders", "durations", "event-loops", "tasks", "queues", "stops",
              "kills", "false-alarms", "programs", "tests"]
ORDER = ["works", "limited", "fails", "untried"]
TOLERANCE = 0.02


def verdict(rights):
    """Of several plants: all, some or none of them right."""
    return "untried" if not rights else "works" if all(rights) else "limited" if any(rights) else "fails"


def processes_with(word):
    """Those that have the word as an argument, by the numbers of this namespace."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/cmdline", "rb") as file:
                    words = file.read().split(b"\0")
            except OSError:
                continue
            if word.encode() in words and words[0].endswith(b"environment-victim"):
                found.append(int(name))
    return found


class Measurement:
    def __init__(self, place, stallctl, number):
        """`place` is a Prepared; `stallctl` a command that reads stores outside."""
        self.place, self.stallctl, self.number = place, stallctl, number
        self.notes = []
        self.verdicts = dict.fromkeys(GUARANTEES, "fails")
        self.is_harmed = False
        if place.place.only:
            self.verdicts["tests"] = self.test()
            return
        stalls, dies, loops, central = (self.store(kind) for kind in ("stalls", "dies", "loops", "central"))
        lines = self.play_stalls(stalls)
        was_stopped = self.play_end(dies)
        loops_end = self.run(["/stallwatch/bin/stallctl", "run", "--store", loops, "--threshold", "60ms", "--",
                              "/stallwatch/bin/loops", "epoll"])
        self.note_errors("stallctl run", loops_end)
        self.verdicts["tests"] = self.test()
        self.judge(lines, was_stopped, self.reports([stalls, dies, loops], central))

    def store(self, kind):
        return f"{self.place.place.data}/{kind}-{self.number}.sqlite"

    def run(self, words, seconds=90):
        process = subprocess.Popen(self.place.command(words), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True)
        try:
            output, errors = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            # With its children, which have the pipes as well.
            os.killpg(process.pid, signal.SIGKILL)
            output, errors = process.communicate()
            errors += "it did not end in time"
        return subprocess.CompletedProcess(words, process.returncode, output, errors)

    def note_errors(self, part, end):
        for line in end.stderr.splitlines()[-3:]:
            if not line.startswith("{"):
                self.notes.append(f"{part}: {line}")

    def play_stalls(self, store):
        end = self.run(["/stallwatch/bin/environment-victim", "stalls", store])
        self.note_errors("victim", end)
        lines = [line.split("\t") for line in end.stdout.splitlines()]
        self.starts = bool(lines)
        # An agent that cannot work may say so; its app goes on.
        if lines and (end.returncode != 0 or lines[-1] != ["done"]):
            self.is_harmed = True
            self.notes.append(f"victim: status {end.returncode}, {lines[-1]}")
        return lines

    def play_end(self, store):
        """Whether it was stopped and killed as planned."""
        started = subprocess.Popen(self.place.command(["/stallwatch/bin/environment-victim", "dies", store]),
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        was_stopped = False
        try:
            for line in started.stdout:
                # The innermost: below a namespace of its own, unshare has the word as well.
                victims = processes_with(store)
                if not victims:
                    break
                if line.strip() == "stop me":
                    time.sleep(0.3)
                    os.kill(victims[-1], signal.SIGSTOP)
                    time.sleep(0.4)
                    os.kill(victims[-1], signal.SIGCONT)
                elif line.strip() == "kill me":
                    time.sleep(0.8 if not self.place.place.limits else 2.5)
                    os.kill(victims[-1], signal.SIGKILL)
                    was_stopped = True
        finally:
            started.kill()
            started.wait()
        return was_stopped

    def test(self):
        end = self.run(["/stallwatch/bin/stallctl", "run", "--test-timeout", "1500ms", "--kill-after", "0s", "--format", "json", "--",
                        "/stallwatch/bin/swift", "test"], seconds=40)
        rows = [json.loads(line) for line in end.stderr.splitlines() if line.startswith('{"')]
        for row in rows:
            if row.get("schema") == "stallctl.hung-test/1":
                frames = [frame for thread in row["threads"] for frame in thread["frames"]]
                if any("hangingTest()" in json.dumps(frame) for frame in frames):
                    return "works"
        self.note_errors("test", end)
        return "fails"

    def reports(self, stores, central):
        """They are ingested there, as a user does it, and read here."""
        end = self.run(["/stallwatch/bin/stallctl", "ingest", "--store", central, *(
            store for store in stores if os.path.exists(self.outside(store)))])
        if end.returncode != 0:
            self.note_errors("ingest", end)
        if not os.path.exists(self.outside(central)):
            return []
        lines = subprocess.run([self.stallctl, "export", "--store", self.outside(central), "--format", "jsonl"],
                               capture_output=True, text=True, check=False).stdout.splitlines()
        return [json.loads(line) for line in lines]

    def outside(self, path):
        return self.place.data + path[len(self.place.place.data):] if self.place.place.data else "/nowhere"

    def judge(self, lines, was_stopped, reports):
        plants = {fields[1]: fields[2:] for fields in lines if fields[0] == "plant"}
        own = [report for report in reports if report["app"] == "victim"]
        of = {name: [report for report in own if report["loop"] == name] for name in (*plants, "stopped", "killed")}
        found = {name: of[name][0] if len(of[name]) == 1 else None for name in of}

        def shows(name):
            report = found[name]
            return report is not None and any(
                frame["function"] == plants[name][0] for sample in report["samples"] for frame in sample["stack"])

        def has_cause(name):
            cause = ((found[name] or {}).get("cause") or {}).get("class")
            # Where the thread lacked a CPU that is the truth of one that computes.
            return cause == plants[name][1] or name == "cpu" and cause in ("starved", "throttled")

        def is_held(name):
            holder = ((found[name] or {}).get("cause") or {}).get("lock_holder")
            if not holder:
                return None
            return any(thread["id"] == holder["thread"] and any(frame["function"] == plants[name][2] for frame in thread["stack"])
                       for thread in found[name]["threads"])

        def is_long(name):
            return found[name] is not None and abs(found[name]["duration_ms"] / 1000 - float(plants[name][3])) <= TOLERANCE

        def all_of(check, *names):
            return verdict([check(name) for name in names if name in plants])

        judged = self.verdicts
        # Where nothing is reported, nothing works, be it that the programs do not even start.
        if not self.starts or not reports:
            return
        judged["blocked"] = all_of(shows, "sleep", "ipc", "lock")
        judged["running"] = all_of(shows, "cpu")
        interrupted = [fields[1] for fields in lines if fields[0] == "interrupted"]
        judged["undisturbed"] = "untried" if not own else "works" if interrupted == ["0"] else "fails"
        judged["causes"] = all_of(has_cause, "sleep", "cpu", "ipc", "network", "lock")
        held = is_held("lock") if "lock" in plants else None
        judged["holders"] = "works" if held else "fails" if held is None else "limited"
        measured = [name for name in plants if found[name] is not None]
        judged["durations"] = verdict([is_long(name) for name in measured])
        for guarantee, plant in (("event-loops", "loop"), ("tasks", "tasks"), ("queues", "queue")):
            judged[guarantee] = all_of(shows, plant)
        killed = found["killed"]
        wrong = [report for report in of["stopped"] if report["verdict"] == "stalled"]
        judged["stops"] = "untried" if not was_stopped or killed is None else "fails" if wrong else "works"
        if killed is None or killed["state"] != "hang":
            judged["kills"] = "fails" if was_stopped else "untried"
        else:
            has_stack = any(frame["function"] == "waitToBeKilled()" for sample in killed["samples"] for frame in sample["stack"])
            judged["kills"] = "works" if has_stack else "limited"
        strays = [report for report in own if report["verdict"] == "stalled" and report["loop"] not in plants
                  and report["loop"] not in ("stopped", "killed")]
        judged["false-alarms"] = "untried" if not own else "fails" if strays else "works"
        loops = [report for report in reports if report["app"] == "loops"]
        judged["programs"] = "works" if any(
            frame["function"] == "planned_stall" for report in loops for sample in report["samples"]
            for frame in sample["stack"]) else "fails"
        self.notes += [f"{name}: {len(of[name])} reports" for name in plants if len(of[name]) != 1]
        for name in plants:
            if found[name] is not None:
                failures = {sample["failure"] for sample in found[name]["samples"] if sample["failure"]}
                self.notes += [f"{name}: {failure}" for failure in failures]
                if not has_cause(name):
                    self.notes.append(f"{name}: cause {(found[name]['cause'] or {}).get('class')}, not {plants[name][1]}")
                if not is_long(name):
                    self.notes.append(f"{name}: {found[name]['duration_ms']:.0f} ms, not {float(plants[name][3]) * 1000:.0f}")
        self.notes += [f"{fields[1]}: {fields[2]}" for fields in lines if fields[0] == "untried"]


def better(one, other):
    """Other load can disturb a measurement, as it can doctor, which tries three times as well."""
    return {name: min(one[name], other[name], key=ORDER.index) for name in GUARANTEES}
