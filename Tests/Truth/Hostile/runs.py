"""Runs of programs and what became of them: each as a process of its own, or as a child of a fork server in stallctl.

A run is *hung* when it takes more than 10 s of CPU, does not end within 30 s, or does not obey SIGTERM within 2 s, without
the time in which it waited for the disk or for a CPU.
"""
import mmap, os, resource, select, signal, socket, struct, subprocess, sys, tempfile, time

# What is kept of an output, and of each end of what a reading command prints. A process begins as the one that it comes from:
# this program's own memory would count as that of the programs that it runs.
OUTPUT, END = 16 << 20, 256 << 10
MOST_MB = 200
ENVIRONMENT = dict(os.environ, SWIFT_BACKTRACE="enable=no")


def threads_of(process):
    """What each thread of a process waits in, by the kernel."""
    words = []
    for thread in sorted(os.listdir("/proc/%d/task" % process)):
        for name in ("comm", "wchan", "syscall", "schedstat"):
            try:
                with open("/proc/%d/task/%s/%s" % (process, thread, name)) as file:
                    words.append(file.read().strip())
            except OSError as error:
                words.append(str(error))
    return "; ".join(words)


def waits_for_disk(process):
    """Whether a thread of a process waits where no signal reaches it, as in fdatasync: the disk's time, not the program's."""
    try:
        for thread in os.listdir("/proc/%d/task" % process):
            with open("/proc/%d/task/%s/stat" % (process, thread)) as file:
                if file.read().rpartition(") ")[2].startswith("D"):
                    return True
    except OSError:
        pass
    return False


def seconds_without_cpu(process):
    """How long the threads of a process were ready to run and waited for a CPU, by the kernel."""
    seconds = 0
    try:
        for thread in os.listdir("/proc/%d/task" % process):
            with open("/proc/%d/task/%s/schedstat" % (process, thread)) as file:
                seconds += int(file.read().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        pass
    return seconds


class Run:
    """One run of a program as a process of its own, and what became of it."""

    def __init__(self, command, term_after=None, seconds=30, keeps_all=True):
        with tempfile.TemporaryFile() as out:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, env=ENVIRONMENT)
            try:
                resource.prlimit(process.pid, resource.RLIMIT_CPU, (10, 12))
                resource.prlimit(process.pid, resource.RLIMIT_CORE, (0, 0))
            except ProcessLookupError:
                pass

            def ended(wait):
                pid, status, usage = os.wait4(process.pid, os.WNOHANG)
                if not pid:
                    time.sleep(wait)
                return (status, usage.ru_maxrss) if pid else None

            self.watch(process.pid, ended, term_after, seconds)
            process.returncode = 0
            self.output = kept(out, keeps_all)

    def watch(self, pid, ended, term_after=None, seconds=30, place=None):
        """Waits until `ended(wait)`, which waits a little itself, has a status and a size in KiB.

        The time begins anew where `place()` says another command than before.
        """
        self.hung, self.where = False, ""
        started = before = time.monotonic()
        at = place and place()
        signalled = None
        # Of the time that it waited for a CPU.
        allowed = 0
        while not (end := ended(0.004)):
            now = time.monotonic()
            if place and place() != at:
                at, started, allowed = place(), now, seconds_without_cpu(pid)
            if waits_for_disk(pid):
                started += now - before
                if signalled:
                    signalled += now - before
            before = now
            if term_after is not None and signalled is None and now - started > term_after:
                os.kill(pid, signal.SIGTERM)  # not send_signal, which may reap it
                signalled = now
            if not self.hung and (now - started > seconds or signalled and now - signalled > 2):
                starved = seconds_without_cpu(pid)
                if starved - allowed > 0.1:
                    started += starved - allowed
                    if signalled:
                        signalled += starved - allowed
                    allowed = starved
                    continue
                self.hung = True
                self.where = threads_of(pid)
                os.kill(pid, signal.SIGKILL)
        self.note(*end)

    def note(self, status, kilobytes):
        self.signal = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        self.code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else -1
        self.max_mb = kilobytes // 1024
        if self.signal == signal.SIGXCPU:
            self.hung = True
        # stallctl blocks SIGTERM while it ingests, and ends by itself.
        self.crashed = self.signal in (4, 5, 6, 7, 8, 11) and not self.hung

    @property
    def is_well(self):
        return not self.hung and not self.crashed and self.max_mb <= MOST_MB


def kept(out, keeps_all):
    """What a program printed, as text: all of it within limits, or its ends."""
    size = os.fstat(out.fileno()).st_size
    out.seek(0)
    text = out.read(OUTPUT if keeps_all else END)
    if not keeps_all and size > END:
        out.seek(max(END, size - END))
        text += b"\n" + out.read(END)
    return text.decode(errors="replace")


class ForkServer:
    """stallctl with its `main` replaced by ForkServer/fork_server.c: a process that is forked from a warm one runs commands.

    A fifth of the CPU of a process for each, which is linked and finds the runtime's types first.
    """
    # A run that dies, for SABOTAGE; commands up to the first that fails, and all of them.
    WARM_UP, RUN, DIE, RUN_ALL = 1, 2, 3, 4
    RUNS, ENDED = 1, 2

    def __init__(self, stallctl, library, commands, store):
        self.stallctl = stallctl
        self.out = tempfile.TemporaryFile()
        ours, theirs = socket.socketpair()
        with theirs, tempfile.TemporaryFile() as progress:
            progress.truncate(mmap.PAGESIZE)
            self.progress = mmap.mmap(progress.fileno(), mmap.PAGESIZE)
            self.process = subprocess.Popen(
                [stallctl], stdin=subprocess.DEVNULL, stdout=self.out, stderr=subprocess.STDOUT,
                pass_fds=[theirs.fileno(), progress.fileno()],
                env=dict(ENVIRONMENT, LD_PRELOAD=library, HOSTILE_CHANNEL=str(theirs.fileno()),
                         HOSTILE_PROGRESS=str(progress.fileno())))
        self.channel = ours
        # The first only waits until the program is linked.
        before = None
        for command in [["--version"], *([*command, "--store", store] for command in commands)]:
            self.ask(self.WARM_UP, [command])
            status, state = self.answer()[1], self.state()
            if status or before and state != before:
                sys.exit("fork server: %s: exit %d, (threads, descriptors) %s, before %s: %s" % (
                    command, status, state, before, kept(self.out, False)[-300:]))
            before = state

    def state(self):
        """How many threads and descriptors it has: children begin with these descriptors, and without the threads."""
        return tuple(len(os.listdir("/proc/%d/%s" % (self.process.pid, kind))) for kind in ("task", "fd"))

    def ask(self, kind, commands):
        self.out.seek(0)
        self.out.truncate()
        text = b"".join(
            b"".join(os.fsencode(word) + b"\0" for word in [self.stallctl, *words]) + b"\0" for words in commands)
        self.channel.sendall(struct.pack("=II", kind, len(text)) + text)

    def answer(self):
        words = self.channel.recv(24, socket.MSG_WAITALL)
        if len(words) != 24:
            raise RuntimeError("the fork server ended with %s: %s" % (self.process.wait(), kept(self.out, False)[-300:]))
        return struct.unpack("=qqq", words)

    def place(self):
        """The number of the command that the child is at, or was when it ended."""
        return struct.unpack_from("=q", self.progress)[0]

    def run(self, commands, kind=RUN):
        """Runs commands in one process, up to one that fails or ends it: how many, and what became of the last."""
        self.ask(kind, commands)
        run = ServedRun(self)
        return min(self.place() + 1, len(commands)), run


class ServedRun(Run):
    """Commands that a child of a fork server ran: all but the last of them went well."""

    def __init__(self, server):
        self.hung, self.where = False, ""
        kind, first, second = server.answer()
        if kind == ForkServer.RUNS:

            def ended(wait):
                return server.answer()[1:] if select.select([server.channel], [], [], wait)[0] else None

            self.watch(first, ended, seconds=29, place=server.place)
        else:
            self.note(first, second)
        self.output = kept(server.out, False)
