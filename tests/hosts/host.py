"""Hosts with systemd as process 1: containers of systemd-nspawn.

A host's /usr is this machine's, read-only, so there is nothing to download; its /etc, /var, /run and /dev/shm are its own.
"""
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

ETC = {
    "hostname": "dtf-test\n",
    "hosts": "127.0.0.1 localhost\n",
    "machine-id": "0123456789abcdef0123456789abcdef\n",  # made before: systemd enables every unit it finds at a first boot
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    "passwd": "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
    "group": "root:x:0:\nnogroup:x:65534:\n",
}
BOOT_SECONDS = 60
SHUTDOWN_SECONDS = 90  # with a job that is saved


class NoHost(Exception):
    """This machine can't boot one; the text is the reason."""


FAILURES = (AssertionError, RuntimeError, TimeoutError, subprocess.TimeoutExpired, OSError, KeyError)


def run_cases(suite, cases, wanted, bench, after):
    """Runs the cases; returns how many failed. `after` puts the host in order. The lines are
    gtest's, because scripts count tests by them.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # meson's at the timeout: hosts are closed on the way out
    failed = 0
    for case in cases:
        if wanted and case.__name__ not in wanted:
            continue
        name, begin = f"{suite}.{case.__name__}", time.monotonic()
        print(f"[ RUN      ] {name}", flush=True)
        verdict = "[       OK ]"
        try:
            case(bench)
        except FAILURES:
            traceback.print_exc(file=sys.stdout)
            verdict, failed = "[  FAILED  ]", failed + 1
        after()
        print(f"{verdict} {name} ({1000 * (time.monotonic() - begin):.0f} ms)", flush=True)
    return failed


def in_own_network():
    """Runs this program again in a network of its own, with a bridge for hosts, and with mounts of
    its own: nothing of them is left at the end.
    """
    for tool in ("unshare", "ip"):
        if not shutil.which(tool):
            raise NoHost(f"there is no {tool}")
    if os.environ.pop("DTF_OWN_NETWORK", "") != "yes":
        tried = subprocess.run(["unshare", "--net", "--mount", "--", "true"], capture_output=True, text=True, check=False)
        if tried.returncode != 0:
            raise NoHost(f"unshare --net --mount: {tried.stderr.strip()}")
        os.environ["DTF_OWN_NETWORK"] = "yes"
        os.execvp("unshare", ["unshare", "--net", "--mount", "--", sys.executable, *sys.argv])
    for words in ("link set lo up", "link add dtf-bridge type bridge", "link set dtf-bridge up"):
        done = subprocess.run(["ip", *words.split()], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise NoHost(f"ip {words}: {done.stderr.strip()}")


def own_cgroups():
    """This process's groups, in the trees by which systemd finds the processes of a unit."""
    paths = {line.split(":")[1]: line.split(":", 2)[2].strip("/") for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines()}
    for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
        fields = line.split(" - ")
        place, (kind, _, options) = fields[0].split()[4], fields[1].split(" ", 2)
        name = "" if kind == "cgroup2" else "name=systemd" if kind == "cgroup" and "name=systemd" in options.split(",") else None
        if name in paths:
            yield pathlib.Path(place) / paths[name]


def missing_tools():
    return [tool for tool in ("systemd-nspawn", "systemctl", "systemd-sysusers", "nsenter") if not shutil.which(tool)]


class Host:
    """Owns the folder, the container and all that runs in it; close() ends them.

    Files: `root`, as seen from outside. `local` is its /usr/local, read-only.
    """

    def __init__(self, local, name="dtf-test", etc=None, network=("--private-network",), binds=(),
                 target="basic.target"):
        """`etc`: files of its /etc, beside or in place of ETC. `network`, `binds`: words for
        systemd-nspawn. `target`: the target that systemd starts at each boot.
        """
        if missing_tools():
            raise NoHost("there is no " + ", ".join(missing_tools()) + ": scripts/install-deps.sh --tests installs them")
        self.name, self.local, self.target = name, local, target
        self.words = [*network, *(f"--bind={each}" for each in binds)]
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="dtf-host-"))
        self.root = self.folder / "root"
        self.cgroups = [group / self.folder.name for group in own_cgroups()]
        self.nspawn = None
        self.leader = None
        self.boots = 0
        try:
            self._make_root(ETC | {"hostname": f"{name}\n"} | (etc or {}))
            self.boot()
        except BaseException:
            self.close()
            raise

    def _make_root(self, etc):
        for name in ("etc/systemd/system", "usr", "var/log", "run", "tmp", "proc", "sys", "dev", "root"):
            (self.root / name).mkdir(parents=True)
        for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
            if pathlib.Path("/usr", name).is_dir():
                (self.root / name).symlink_to(f"usr/{name}")
        for name, text in etc.items():
            (self.root / "etc" / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / "etc" / name).write_text(text)
        shutil.copy("/usr/lib/os-release", self.root / "etc/os-release")
        for name in ("etc/.updated", "var/.updated"):  # nothing is to be rebuilt because /usr is newer
            (self.root / name).touch()

    def boot(self):
        self.boots += 1
        self.console = open(self.folder / "console", "w+")
        for group in self.cgroups:
            group.mkdir(exist_ok=True)
        # Each host has groups of its own: in shared ones a systemd would take a unit of the same
        # name from another.
        self.nspawn = subprocess.Popen(
            ["sh", "-c", 'for group in $0; do echo $$ >"$group/cgroup.procs"; done; exec "$@"', " ".join(map(str, self.cgroups)),
             "systemd-nspawn", "--quiet", f"--directory={self.root}", f"--machine={self.name}", "--register=no",
             "--keep-unit", *self.words, "--bind-ro=/usr", f"--bind-ro={self.local}:/usr/local", "--link-journal=no",
             "--boot", f"systemd.unit={self.target}"],
            stdin=subprocess.DEVNULL, stdout=self.console, stderr=subprocess.STDOUT, start_new_session=True)
        self.until("process 1 of the container", self._find_leader, BOOT_SECONDS)
        state = self.until("systemd in the container", self._booted, BOOT_SECONDS)
        if state != "running":
            failed = self.run("systemctl", "list-units", "--failed", "--no-legend", "--plain").stdout
            print(f"the host is {state}: {failed}", flush=True)

    def _find_leader(self):
        """nspawn's only child is process 1 of the container once it is called so."""
        if self.nspawn.poll() is not None:
            raise NoHost(f"systemd-nspawn ended with {self.nspawn.returncode}: {self.said()}")
        children = pathlib.Path(f"/proc/{self.nspawn.pid}/task/{self.nspawn.pid}/children").read_text().split()
        for child in children:
            status = pathlib.Path(f"/proc/{child}/status").read_text()
            if "\nNSpid:" in status and status.split("\nNSpid:")[1].splitlines()[0].split()[-1] == "1" \
                    and status.startswith("Name:\tsystemd\n"):
                self.leader = int(child)
        return self.leader

    def _booted(self):
        state = self.run("systemctl", "is-system-running", check=False).stdout.strip()
        return state if state in ("running", "degraded") else None

    def kill(self):
        """Acts like a power cut: all processes end at once, and the files stay for boot()."""
        os.kill(self.leader, signal.SIGKILL)
        self.leader = None
        self.nspawn.wait(BOOT_SECONDS)

    def shut_down(self):
        """Shuts the host down: its units are stopped. boot() starts it again."""
        self.systemctl("--no-block", "poweroff")
        self.nspawn.wait(SHUTDOWN_SECONDS)
        self.leader = None

    def said(self):
        return " | ".join((self.folder / "console").read_text(errors="replace").split("\n")[-6:]).strip()

    def until(self, what, asked, seconds):
        """Returns the value of `asked` once it is true. Every wait has a name and a deadline."""
        end = time.monotonic() + seconds
        while True:
            answer = asked()
            if answer:
                return answer
            if time.monotonic() > end:
                raise TimeoutError(f"no {what} within {seconds} s; the console: {self.said()}")
            time.sleep(0.05)

    def run(self, *command, check=True, seconds=60):
        """Runs a command within the host."""
        done = subprocess.run(["nsenter", f"--target={self.leader}", "--mount", "--uts", "--ipc", "--net", "--pid", "--",
                               "/usr/bin/env", "-i", "PATH=/usr/local/bin:/usr/bin:/usr/sbin", *command],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds, check=False)
        if check and done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: {done.returncode}: {done.stdout}{done.stderr}")
        return done

    def systemctl(self, *words, check=True, seconds=120):
        return self.run("systemctl", *words, check=check, seconds=seconds)

    def show(self, unit):
        """Returns properties of the unit: ActiveState, Result, NRestarts, StatusText, MainPID..."""
        lines = self.systemctl("show", unit).stdout.splitlines()
        return dict(line.split("=", 1) for line in lines if "=" in line)

    def journal(self, *words):
        return self.run("journalctl", "--no-pager", "--output=cat", *words, check=False).stdout

    def close(self):
        if self.leader is not None and self.nspawn.poll() is None:
            try:
                pathlib.Path(f"/proc/{self.leader}").stat()
                subprocess.run(["kill", "-KILL", str(self.leader)], check=False)
            except FileNotFoundError:
                pass
        if self.nspawn is not None:
            try:
                self.nspawn.wait(10)
            except subprocess.TimeoutExpired:
                self.nspawn.send_signal(signal.SIGKILL)
                self.nspawn.wait(10)
        for group in self.cgroups:
            for each in sorted(group.glob("**/"), reverse=True):  # inner groups first
                with contextlib.suppress(OSError):
                    each.rmdir()
        shutil.rmtree(self.folder, ignore_errors=True)
