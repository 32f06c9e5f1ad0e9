"""The environments of scripts/environments: roots, what is mounted in them, and what surrounds the programs there."""

import os
import subprocess
from dataclasses import dataclass, field

# Of Docker's containers: what their processes may hold, and what is not shown of the kernel.
DOCKER_CAPABILITIES = ("chown,dac_override,fowner,fsetid,kill,setgid,setuid,setpcap,net_bind_service,net_raw,sys_chroot,mknod,"
                       "audit_write,setfcap")
DOCKER_MASKS = """
for file in /proc/kcore /proc/keys /proc/timer_list /proc/sched_debug; do
    [ ! -e "$root$file" ] || mount --bind /dev/null "$root$file"
done
for folder in bus fs irq sys; do
    mount --bind "$root/proc/$folder" "$root/proc/$folder" && mount -o remount,ro,bind "$root/proc/$folder"
done
"""


@dataclass
class Place:
    key: str
    label: str
    # The folder of the root, in the folder of roots.
    root: str = "bookworm"
    # More words of `confine`.
    confined: list = field(default_factory=list)
    # Shell, run outside with $root, after everything else is mounted.
    mounts: str = ""
    has_proc: bool = True
    has_shm: bool = True
    has_tmp: bool = True
    # Where the agent's store and the working directory are. Empty: nothing can be written.
    data: str = "/data"
    user: str = ""
    variables: dict = field(default_factory=lambda: {"HOME": "/root", "PATH": "/usr/bin:/bin"})
    # Words before the command, outside.
    around: list = field(default_factory=list)
    own_processes: bool = False
    has_network: bool = True
    is_read_only: bool = False
    # Limits of a control group: `memory` in bytes, `cpu` as a share of one processor.
    limits: dict = field(default_factory=dict)
    # Measured in an emulated machine, whose kernel has what this one may lack: scripts/environments-machine.
    is_in_machine: bool = False
    # The guarantees that the place is about; empty: all. The others are not tried there.
    only: list = field(default_factory=list)
    # What a reader of the table has to know.
    note: str = ""

    def obstacle(self, roots):
        """Why it is not possible here; None if it is."""
        if self.is_in_machine and os.environ.get("MACHINE") != "1":
            return "it was not measured in a machine of its own: qemu-system-x86 is missing, or see machine.log"
        if not os.path.isdir(os.path.join(roots, self.root)):
            return f"there is no root {self.root}: see {roots}/{self.root}.log"
        return None


PLACES = [
    Place("debian-12", "Debian 12 (glibc 2.36)"),
    Place("debian-13", "Debian 13 (glibc 2.41)", root="trixie"),
    Place("debian-unstable", "Debian unstable", root="sid"),
    Place("debian-11", "Debian 11 (glibc 2.31)", root="bullseye", note="they do not load: they need glibc 2.35 and GCC 12's libstdc++ (GLIBCXX_3.4.30)"),
    Place("user", "a uid without a name, no HOME", user="12345:12345", variables={}),
    Place("pid-1", "pid 1 of a container", own_processes=True),
    Place("docker", "Docker's seccomp profile, capabilities and masks, as root", confined=["--docker"], own_processes=True,
          around=["setpriv", "--bounding-set", "-all,+" + DOCKER_CAPABILITIES.replace(",", ",+"), "--no-new-privs"],
          mounts=DOCKER_MASKS),
    Place("docker-user", "the same, as a user", confined=["--docker"], own_processes=True, user="1000:1000", mounts=DOCKER_MASKS,
          note="HOME is root's, as in many images"),
    Place("docker-before-4.8", "Docker's profile for kernels before 4.8", confined=["--old-docker"], own_processes=True),
    Place("no-process_vm_readv", "seccomp without process_vm_readv", confined=["--refuse", "process_vm_readv"]),
    Place("no-rt_tgsigqueueinfo", "seccomp without rt_tgsigqueueinfo", confined=["--refuse", "rt_tgsigqueueinfo"]),
    Place("no-proc-syscall", "no /proc/PID/syscall, schedstat, wchan, stack, as in gVisor",
          confined=["--hide", "syscall,schedstat,wchan,stack"]),
    Place("no-proc", "no /proc", has_proc=False,
          note="Swift's runtime reads a program's arguments there; stallctl says so, and a program that looks at them ends"),
    Place("read-only", "read-only root, but for /data and /tmp", is_read_only=True),
    Place("nothing-writable", "read-only root, nothing writable", is_read_only=True, has_shm=False, has_tmp=False, data=""),
    Place("no-shm", "no /dev/shm", has_shm=False),
    Place("no-tmp", "no /tmp", has_tmp=False),
    Place("no-shm-no-tmp", "neither /dev/shm nor /tmp", has_shm=False, has_tmp=False),
    Place("no-loopback", "no network, not even loopback", has_network=False),
    Place("memory-64M", "64 MB of memory", limits={"memory": 64 << 20}),
    Place("cpu-0.1", "0.1 of a CPU", limits={"cpu": 0.1}),
    Place("one-cpu", "one CPU", around=["taskset", "-c", "0"]),
    *(Place(f"yama-{scope}", f"Yama's ptrace_scope {scope}, as a user", user="1000:1000", variables={}, is_in_machine=True, only=["tests"],
            mounts=f"echo {scope} >/proc/sys/kernel/yama/ptrace_scope") for scope in range(4)),
    Place("minimal", "no shell, only the libraries that the package depends on", root="minimal", variables={}),
    Place("no-libsqlite3", "the same without libsqlite3", root="minimal-without-sqlite", variables={},
          note="they do not load: SQLite is not in them"),
]

# Cells that were not measured, with the reason.
NOT_TRIED = [
    ("Alpine and others with musl", "the programs need glibc; there is no build for musl"),
    ("Ubuntu, Fedora, Amazon Linux", "no archive of theirs can be reached from here; glibc decides (see below)"),
    ("gVisor", "not to be had here; the row without /proc/PID/syscall has what it lacks"),
]


class Groups:
    """Control groups for the limits, in either version."""

    def __init__(self, token):
        self.name = "stallwatch-" + token
        self.made = []

    def make(self, limits):
        """Files that take the pid of a process; raises OSError where limits cannot be set."""
        entries = []
        for controller in limits:
            base, is_old = self.hierarchy(controller)
            folder = os.path.join(base, self.name)
            os.makedirs(folder, exist_ok=True)
            self.made.append(folder)
            if controller == "memory":
                self.write(folder, "memory.limit_in_bytes" if is_old else "memory.max", str(limits["memory"]))
            elif is_old:
                self.write(folder, "cpu.cfs_period_us", "100000")
                self.write(folder, "cpu.cfs_quota_us", str(int(limits["cpu"] * 100000)))
            else:
                self.write(folder, "cpu.max", f"{int(limits['cpu'] * 100000)} 100000")
            entries.append(os.path.join(folder, "cgroup.procs"))
        return entries

    @staticmethod
    def hierarchy(controller):
        with open("/proc/mounts", encoding="utf-8") as file:
            mounts = [line.split() for line in file]
        for mount in mounts:
            if mount[2] == "cgroup" and controller in mount[3].split(","):
                return mount[1], True
        for mount in mounts:
            if mount[2] == "cgroup2":
                with open(mount[1] + "/cgroup.controllers", encoding="utf-8") as file:
                    if controller in file.read().split():
                        return mount[1], False
        raise OSError(f"no control groups with the controller {controller}")

    @staticmethod
    def write(folder, name, text):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)

    def remove(self):
        for folder in self.made:
            try:
                os.rmdir(folder)
            except OSError:
                pass
        self.made = []


class Prepared:
    """A place whose folders are there: runs commands in it."""

    def __init__(self, place, roots, scratch, token):
        self.place = place
        self.scratch = os.path.join(scratch, place.key)
        self.root = os.path.join(self.scratch, "root")
        self.shm = f"/dev/shm/stallwatch-{token}-{place.key}"
        self.groups = Groups(token)
        subprocess.run(["rm", "-rf", self.scratch, self.shm], check=True)
        for folder in ("data", "tmp"):
            os.makedirs(os.path.join(self.scratch, folder))
            os.chmod(os.path.join(self.scratch, folder), 0o1777)
        os.makedirs(self.shm)
        os.chmod(self.shm, 0o1777)
        # Linked, not copied: nothing in there is written to. What the place lacks is taken from it.
        subprocess.run(["cp", "-al", os.path.join(roots, place.root), self.root], check=True)
        for is_there, folder in ((place.data, "data"), (place.has_tmp, "tmp"), (place.has_shm, "dev/shm")):
            if not is_there:
                os.rmdir(os.path.join(self.root, folder))
        self.entries = self.groups.make(place.limits)

    @property
    def data(self):
        """Outside, where its stores are."""
        return os.path.join(self.scratch, "data")

    def remove(self):
        subprocess.run(["rm", "-rf", self.shm, self.root], check=True)
        self.groups.remove()

    def run_doctor(self):
        return subprocess.run(self.command(["/stallwatch/bin/stallctl", "doctor", "--json"]), stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, errors="replace", check=False)

    def command(self, words):
        """The command that runs these words in there, to be executed outside."""
        place = self.place
        lines = ["set -e", f"root={self.root}", "mount --make-rprivate /", 'mount --bind "$root" "$root"']
        if place.data:
            lines.append(f'mount --bind {self.scratch}/data "$root/data"')
        if place.has_tmp:
            lines.append(f'mount --bind {self.scratch}/tmp "$root/tmp"')
        if place.has_shm:
            lines.append(f'mount --bind {self.shm} "$root/dev/shm"')
        if place.has_proc:
            lines.append('mount -t proc proc "$root/proc"')
        if place.is_read_only:
            lines.append('mount -o remount,ro,bind "$root"')
        lines += [place.mounts, *(f"echo $$ >{entry}" for entry in self.entries)]
        user = [f"--userspec={place.user}", "--groups="] if place.user else []
        confined = ["/stallwatch/confine", "--in", place.data or "/", *place.confined, "--", *words]
        lines.append('exec "$@"')
        variables = [f"{name}={value}" for name, value in place.variables.items()]
        chroot = ["chroot", *user, self.root, *confined]
        spaces = ["unshare", "--mount"]
        if place.own_processes:
            spaces += ["--pid", "--fork", "--kill-child"]
        if not place.has_network:
            spaces.append("--net")
        return [*spaces, "sh", "-c", "\n".join(lines), "sh", *place.around, "env", "-i", *variables,
                "/usr/sbin/chroot", *chroot[1:]]
