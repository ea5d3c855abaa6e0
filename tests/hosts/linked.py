"""Hosts that are network namespaces, each with one link to a bridge. The kernel counts the bytes of
a link, and `tc` limits its rate. All hosts use this machine's disk.

To be used after host.in_own_network(), which makes the bridge and removes everything at the end.
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import host as hosts

NETWORK = "10.98.0"
SOON = 20  # seconds
BURST_SECONDS, BURST_BYTES = 0.002, 6000  # of a limited link; the larger one


class Link:
    """One host. Owns the process that keeps its network; close() ends it."""

    def __init__(self, number):
        self.address = f"{NETWORK}.{number + 1}"
        self.port = f"link{number}"  # of the bridge
        # It ends with this program, when its input is closed.
        self.keeper = subprocess.Popen(["unshare", "--net", "--", "cat"], stdin=subprocess.PIPE)
        try:
            self._until_apart()
            ip("link", "add", self.port, "type", "veth", "peer", "name", "eth0", "netns", str(self.keeper.pid))
            ip("link", "set", self.port, "master", "dtf-bridge", "up")
            for words in ("link set lo up", f"addr add {self.address}/24 dev eth0", "link set eth0 up"):
                self.run("ip", *words.split())
        except BaseException:
            self.close()
            raise

    def _until_apart(self):
        own = os.readlink("/proc/self/ns/net")
        end = time.monotonic() + SOON
        while os.readlink(f"/proc/{self.keeper.pid}/ns/net") == own:
            if self.keeper.poll() is not None or time.monotonic() > end:
                raise hosts.NoHost("unshare --net makes no network of its own")
            time.sleep(0.01)

    def words(self, *command):
        """The command line that runs `command` on this host."""
        return ["nsenter", f"--target={self.keeper.pid}", "--net", "--", *map(str, command)]

    def run(self, *command):
        return must(self.words(*command))

    def start(self, *command, **options):
        return subprocess.Popen(self.words(*command), stdin=subprocess.DEVNULL, **options)

    def sent(self):
        """Bytes that have left by the link, with the headers of Ethernet, IP and TCP."""
        for line in self.run("cat", "/proc/net/dev").splitlines():
            name, _, counts = line.partition(":")
            if name.strip() == "eth0":
                return int(counts.split()[8])
        raise RuntimeError(f"{self.address} has no eth0")

    def limit(self, bytes_per_second):
        """Limits both directions."""
        burst = max(BURST_BYTES, int(BURST_SECONDS * bytes_per_second))
        words = ["tc", "qdisc", "replace", "dev", None, "root", "tbf", "rate", f"{int(8 * bytes_per_second)}bit",
                 "burst", str(burst), "latency", "200ms"]
        for device, where in (("eth0", self.words()), (self.port, [])):
            words[4] = device
            done = subprocess.run([*where, *words], capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise hosts.NoHost(f"this kernel can't limit a link: {' '.join(words)}: {done.stderr.strip()}")

    def close(self):
        self.keeper.stdin.close()
        self.keeper.wait(SOON)


class Links:
    """Several hosts; close() ends them."""

    def __init__(self, count):
        self.hosts = []
        try:
            for number in range(count):
                self.hosts.append(Link(number))
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self.hosts

    def __exit__(self, *_):
        self.close()

    def close(self):
        for each in self.hosts:
            each.close()


def must(words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, timeout=SOON)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, words))}: {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def ip(*words):
    return must(["ip", *words])


class Tasks:
    """The tasks of a job that are started by hand, each on its host. close() kills what still runs.
    """

    def __init__(self, build, folder):
        self.build, self.folder = build, pathlib.Path(folder)
        self.running = {}  # name -> process

    def start(self, on, job, index, file):
        program = self.build / ("daemons/psd/psd" if job == "ps" else "daemons/workerd/workerd")
        name = f"{job}-{index}"
        with open(self.log(name), "w") as log:
            self.running[name] = on.start(program, "--cluster", file, "--task", index, stdout=log, stderr=log)

    def log(self, name):
        return self.folder / f"{name}.log"

    def wait(self, seconds):
        """Waits for all of them; one that fails is an error with its last lines."""
        end = time.monotonic() + seconds
        for name, process in self.running.items():
            try:
                code = process.wait(max(0.1, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                code = "still running"
            if code != 0:
                raise RuntimeError(f"{name}: {code} after {seconds} s at most\n{self.log(name).read_text(errors='replace')[-3000:]}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.running.values():
            if process.poll() is None:
                process.kill()
            process.wait(SOON)


def main(run):
    """Makes the network and a folder, calls `run(build, wanted, folder)`; returns the exit code."""
    build = pathlib.Path(sys.argv[1]).resolve()
    if os.geteuid() != 0:
        print("SKIPPED: only root makes network namespaces that are linked")
        return 77
    try:
        hosts.in_own_network()
        with tempfile.TemporaryDirectory() as folder:
            return 1 if run(build, sys.argv[2:], pathlib.Path(folder)) else 0
    except hosts.NoHost as reason:
        print(f"SKIPPED: no hosts with links of their own can be had here: {reason}")
        return 77
