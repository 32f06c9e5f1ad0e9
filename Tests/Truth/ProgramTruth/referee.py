"""What the kernel saw of the thread that runs a program's loop, the main one or another that is named: its scheduler's and
system calls' events, by ftrace. Needs root.

A thread rests in the call that it waits by most often (`epoll_wait` of one descriptor, `poll`); between two of these calls
it is busy. Another wait within a busy span is work: that for a child, or of a loop within the loop."""

import os
import re
import select
import subprocess
import threading

ROOT = "/sys/kernel/tracing"
EVENTS = ("sched/sched_switch", "sched/sched_waking", "raw_syscalls/sys_enter", "raw_syscalls/sys_exit")
# The calls of x86_64 that wait for events. Those of epoll have their descriptor first.
EPOLL, OTHERS = {232, 281, 441}, {7, 23, 270, 271}
LINE = re.compile(r"^\s*(.{1,16})-(\d+)\s+\(\s*([-\d]+)\)\s+\[\d+\]\s+\S+\s+([\d.]+): (\w+): (.*)$")
SWITCH = re.compile(r"prev_comm=.* prev_pid=(\d+) prev_prio=\d+ prev_state=(\S+) ==> next_comm=.* next_pid=(\d+)")
WAKING = re.compile(r"comm=.* pid=(\d+)")
ENTER = re.compile(r"NR (-?\d+) \(([0-9a-f]+)")


def is_possible():
    """Whether the kernel can be asked; mounts its trace, if need be."""
    if os.geteuid() == 0 and not os.path.isdir(ROOT + "/instances"):
        subprocess.run(["mount", "-t", "tracefs", "nodev", ROOT], stderr=subprocess.DEVNULL, check=False)
    return os.path.isdir(ROOT + "/instances") and os.uname().machine == "x86_64"


class Thread:
    """A loop's waits in order: [call and descriptor, begin, end, seconds for which the thread queued for a CPU in
    it, and between it and the next]."""

    def __init__(self):
        self.waits, self.state, self.since, self.is_waiting = [], "cpu", 0.0, False

    def move(self, at, state):
        if self.state == "queued" and self.waits:
            self.waits[-1][3 if self.is_waiting else 4] += at - max(self.since, self.waits[-1][1])
        self.state, self.since = state, at

    def enter(self, at, wait):
        self.move(at, self.state)
        if wait:
            self.waits.append([wait, at, at, 0.0, 0.0])
        self.is_waiting = bool(wait)

    def leave(self, at):
        if self.is_waiting:
            self.move(at, self.state)
            self.waits[-1][2], self.is_waiting = at, False

    def spans(self, at_least):
        """The busy spans of that many seconds: begin, end, seconds for which it queued for a CPU."""
        calls = [wait[0] for wait in self.waits]
        rest = max(set(calls), key=calls.count, default=None)
        found, begin, queued = [], None, 0.0
        for call, entered, left, inside, after in self.waits:
            if call == rest:
                if begin is not None and entered - begin >= at_least:
                    found.append((begin, entered, queued))
                begin, queued = left, after
            else:
                queued += inside + after
        return found


class Referee:
    """Follows one process and all that it starts. `start` runs a command; `spans` says what a process's loop did: its thread
    whose name begins so, else its main thread."""

    def __init__(self, name=None):
        self.name = name
        self.folder = f"{ROOT}/instances/stallwatch-{os.getpid()}-{id(self):x}"
        os.mkdir(self.folder)
        self.write("trace_clock", "mono")
        self.write("buffer_size_kb", "32768")
        for option in ("event-fork", "record-tgid"):
            self.write("options/" + option, "1")
        self.threads, self.loops = {}, {}
        self.reader, self.is_over = threading.Thread(target=self.read, daemon=True), False

    def write(self, name, text):
        with open(f"{self.folder}/{name}", "w", encoding="utf-8") as file:
            file.write(text)

    def start(self, command, **options):
        """Runs it, traced from its first instruction on."""
        go, begin = os.pipe()
        held = ["/bin/sh", "-c", f'read -r go <&{go}; exec {go}<&-; exec "$@"', "sh"]
        process = subprocess.Popen(held + command, pass_fds=[go], **options)
        os.close(go)
        self.write("set_event_pid", str(process.pid))
        for event in EVENTS:
            self.write(f"events/{event}/enable", "1")
        self.reader.start()
        os.write(begin, b"\n")
        os.close(begin)
        return process

    def read(self):
        """Until the trace is over and its buffer is empty."""
        pipe, rest = os.open(self.folder + "/trace_pipe", os.O_RDONLY | os.O_NONBLOCK), b""
        while True:
            is_over = self.is_over
            try:
                part = os.read(pipe, 1 << 20)
            except BlockingIOError:
                part = b""
            if not part and is_over:
                break
            if not part:
                select.select([pipe], [], [], 0.2)
            *lines, rest = (rest + part).split(b"\n")
            for line in lines:
                self.note(line.decode(errors="replace"))
        os.close(pipe)

    def note(self, line):
        """One event."""
        match = LINE.match(line)
        if not match:
            return
        name, thread, group, at, event, rest = match.groups()
        at, known = float(at), self.threads
        if event == "sched_switch":
            if found := SWITCH.match(rest):
                before, after = known.get(int(found[1])), known.get(int(found[3]))
                if before:
                    before.move(at, "queued" if found[2].startswith("R") else "blocked")
                if after:
                    after.move(at, "cpu")
        elif event == "sched_waking":
            woken = known.get(int(WAKING.match(rest)[1]))
            if woken and woken.state == "blocked":
                woken.move(at, "queued")
        elif name.startswith(self.name) if self.name else thread == group:
            own = self.threads.setdefault(int(thread), Thread())
            self.loops[int(group)] = own
            if event == "sys_exit":
                own.leave(at)
            elif found := ENTER.match(rest):
                call = int(found[1])
                own.enter(at, (call in EPOLL and (1, int(found[2], 16))) or (call in OTHERS and (2, 0)) or None)

    def finish(self):
        """Ends the trace; returns how many events the kernel could not keep."""
        self.write("tracing_on", "0")
        self.is_over = True
        self.reader.join()
        lost = 0
        for folder in os.listdir(self.folder + "/per_cpu"):
            with open(f"{self.folder}/per_cpu/{folder}/stats", encoding="utf-8") as file:
                lost += int(re.search(r"overrun: (\d+)", file.read())[1])
        os.rmdir(self.folder)
        return lost

    def spans(self, process, at_least):
        """The busy spans of its loop."""
        return self.loops[process].spans(at_least) if process in self.loops else []
