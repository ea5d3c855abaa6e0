#!/usr/bin/env python3
"""Measures promises of tests/chaos/README.md on real jobs in bad surroundings, beside the same job
in good ones.

Usage: tests/chaos/promises.py BUILD_FOLDER [NAME...] [--seconds N]
  disk         R9: steps a second while the disk of checkpoints is full, beside those with room
  connections  R15: a ps that has no descriptor left, with 10 000 connections that send nothing
  clock        R14: the wall clock of a job jumps by a day twenty times
  memory       R16: the control group of a job is full, and the kernel kills a ps and both workers
  stop         R17: 60 jobs get SIGTERM at a drawn moment from their start to their end, a third of them when
               their chief was just killed, and are started again
  checkpoints  R24: steps a second of a job that saves 40 MB every second, beside one that saves nothing
  soak         R23: descriptors and memory of the tasks over --seconds (default 120), a worker killed every 10 s
  network      R11: steps a second at several rates and losses of packets, and whether the bytes are the same
  no name: all of them

Prints one table. Ends with 0 if every row keeps its promise. Needs root (mounts, control groups, a
network namespace), nft, tc and libfaketime.
"""
import argparse
import collections
import contextlib
import ctypes
import errno
import filecmp
import glob
import json
import os
import pathlib
import queue
import random
import re
import resource
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HEAD = ("| | surroundings | figure | promise | kept |", "|---|---|---|---|---|")
PATIENCE = 300  # seconds without a step, or for an end: a hang
LIMIT = 64  # descriptors of a task in `connections`


class Job:
    """A job of two ps and two workers on the digits that dtf draws, under dtf-launch. Owns the launcher."""

    def __init__(self, build, folder, steps, more="", units=10, settings="", data="", prefix=(), env=None):
        self.folder = pathlib.Path(folder)
        self.run = self.folder / "run"
        file = self.folder / "job.yaml"
        file.write_text(f"""job: promises
run_dir: {self.run}
cluster:
  ps: ['localhost:auto', 'localhost:auto']
  worker: ['localhost:auto', 'localhost:auto']
shared_memory: false
{settings}train:
  model:
    input: {{shape: [28, 28, 1]}}
    layers: [flatten: , dense: {{units: {units}, name: first}}, dense: {{units: 10, name: softmax}}]
    loss: sparse_categorical_crossentropy
  data: {{train: {{format: digits, count: 600}}{data}, batch_size: 20, seed: 7}}
  optimizer: {{adam: {{learning_rate: 0.001}}}}
  steps: {steps}
  report: {{every_steps: 5}}
{more}""")
        self.errors = open(self.folder / "stderr", "ab")
        self.process = subprocess.Popen([*prefix, f"{build}/launcher/dtf-launch", file, "--json"], stdout=subprocess.PIPE,
                                        stderr=self.errors, text=True,
                                        # `dtf-launch stop` in another shell must not find this job.
                                        env={**os.environ, "XDG_RUNTIME_DIR": str(self.folder), "XDG_STATE_HOME": str(self.folder), **(env or {})})
        self.events = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()
        self.pids, self.step, self.summary, self.is_ready = {}, 0, None, set()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            self.process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(30)
        self.process.kill()
        self.process.wait()
        self.errors.close()

    def read(self):
        for line in self.process.stdout:
            self.events.put(json.loads(line))
        self.events.put(None)

    def follow(self, until):
        """Takes events until `until()` holds; returns False if the job ends before."""
        last = time.monotonic()
        while not until():
            try:
                event = self.events.get(timeout=0.05)
            except queue.Empty:
                assert time.monotonic() < last + PATIENCE, f"no event for {PATIENCE} s\n{self.said()}"
                continue
            last = time.monotonic()
            if event is None:
                self.events.put(None)
                return False
            kind = event["event"]
            if kind == "started":
                self.pids[event["task"]] = event["pid"]
            elif kind == "ready":
                self.is_ready.add(event["task"])
            elif kind == "ended":
                self.is_ready.discard(event["task"])
            elif kind == "progress":
                self.step = event["step"]
            elif kind == "summary":
                self.summary = event
        return True

    def runs_for(self, seconds):
        """Steps a second meanwhile."""
        begin, first = time.monotonic(), self.step
        assert self.follow(lambda: time.monotonic() >= begin + seconds), self.said()
        return (self.step - first) / (time.monotonic() - begin)

    def has_stepped(self):
        assert self.follow(lambda: self.step > 0), self.said()

    def ends(self):
        self.follow(lambda: False)
        return self.summary["outcome"] if self.summary else "no end"

    def said(self):
        return (self.folder / "stderr").read_text(errors="replace")

    def restarts(self):
        return sum(task["restarts"] for task in self.summary["tasks"])

    def logs(self):
        return "".join(path.read_text(errors="replace") for path in (self.run / "logs").glob("*.log"))

    def last_values(self):
        found = [path for path in (self.run / "checkpoints").glob("step-*") if path.name[5:].isdigit()]
        steps = sorted(found, key=lambda path: int(path.name.split("-")[1]))
        return sorted(steps[-1].glob("*.safetensors")) if steps else []


def same_bytes(ours, theirs):
    return bool(ours) and [path.name for path in ours] == [path.name for path in theirs] and all(
        filecmp.cmp(a, b, shallow=False) for a, b in zip(ours, theirs))


def row(name, surroundings, figure, promise, kept):
    print(f"| {name} | {surroundings} | {figure} | {promise} | {'yes' if kept else 'NO'} |", flush=True)
    return kept


def run(*words):
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


# ---- R9

def disk(build, folder, _seconds):
    """A file system of its own is filled to the last byte, and emptied again, three times in turns."""
    place = folder / "disk"
    place.mkdir()
    run("mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", str(place))
    try:
        more = "  checkpoint: {every_seconds: 1, keep: 2}\n"
        roomy, full = [], []
        with Job(build, place, 100000000, more, units=64) as job:
            job.has_stepped()
            job.runs_for(3)
            for _ in range(3):
                roomy.append(job.runs_for(6))
                filler = place / "filler"
                fill(filler)
                failures = job.logs().count("event=checkpoint_failed")
                full.append(job.runs_for(6))
                failed = job.logs().count("event=checkpoint_failed") - failures
                saved = len(job.last_values())
                filler.unlink()
                job.runs_for(3)
        kept = statistics.median(full) / statistics.median(roomy)
        said = row("R9", f"disk full, three times; {failed} checkpoints failed in the last 6 s", f"{kept:.2f} of the steps a second",
                   "at least 0.95, the old checkpoints stay", kept >= 0.95 and failed > 0 and saved > 0)
        return said
    finally:
        run("umount", "-l", str(place))


def fill(path):
    with open(path, "wb", buffering=0) as file:
        try:
            while file.write(b"x" * 65536):
                pass
        except OSError as error:
            assert error.errno == errno.ENOSPC, error


# ---- R11

NETWORKS = (
    ("undisturbed", [], []),
    ("100 Mbit/s", ["rate", "100mbit", "burst", "64kbit", "latency", "400ms"], []),
    ("10 Mbit/s", ["rate", "10mbit", "burst", "64kbit", "latency", "400ms"], []),
    ("1 Mbit/s", ["rate", "1mbit", "burst", "64kbit", "latency", "1s"], []),
    ("1 % of packets lost", [], ["1"]),
    ("5 % of packets lost", [], ["5"]),
    ("20 % of packets lost", [], ["20"]),
)


def network(build, folder, _seconds):
    """In a network namespace of this process alone: its loopback is slow or loses packets."""
    CLONE_NEWNET = 0x40000000
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "no network namespace")
    run("ip", "link", "set", "lo", "mtu", "1500", "up")  # tbf drops each packet larger than its burst
    run("nft", "add table inet loss; add chain inet loss in { type filter hook input priority 0; }")
    all_kept, reference, calm = True, None, None
    for name, rate, loss in NETWORKS:
        if rate:
            run("tc", "qdisc", "add", "dev", "lo", "root", "tbf", *rate)
        if loss:
            run("nft", "add", "rule", "inet", "loss", "in", "numgen", "random", "mod", "100", "<", loss[0], "drop")
        place = folder / name.split(" of")[0].replace(" ", "-").replace("/", "-").replace("%", "percent")
        place.mkdir()
        with Job(build, place, 100, "  replication: {mode: sync}\n  checkpoint: {every_seconds: 3600}\n") as job:
            job.has_stepped()
            begin, first = time.monotonic(), job.step
            assert job.follow(lambda: job.step >= 100), job.said()
            speed = (100 - first) / (time.monotonic() - begin)
            ended = job.ends()
            reference = reference or job.last_values()
            calm = calm or speed
            same = same_bytes(job.last_values(), reference)
            all_kept = row("R11", name, f"{speed:.1f} steps/s, {speed / calm:.3f} of undisturbed; {ended}, "
                           f"{'the same bytes' if same else 'OTHER bytes'}, {job.restarts()} restarts",
                           "done, the same bytes, no restart",
                           ended == "done" and same and job.restarts() == 0) and all_kept
        subprocess.run(["tc", "qdisc", "del", "dev", "lo", "root"], stderr=subprocess.DEVNULL)
        run("nft", "flush", "chain", "inet", "loss", "in")
    return all_kept


# ---- R14

def clock(build, folder, _seconds):
    """libfaketime moves the wall clock of dtf-launch and its tasks; no monotonic clock is moved by a person."""
    found = glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
    assert found, "libfaketime is missing: apt-get install faketime"
    offset = folder / "offset"
    offset.write_text("+0")
    env = {"LD_PRELOAD": found[0], "FAKETIME_TIMESTAMP_FILE": str(offset), "FAKETIME_NO_CACHE": "1",
           "FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1"}
    more = "  replication: {mode: sync}\n  checkpoint: {every_seconds: 3600}\n"
    jumps = 0
    for name in ("moved", "calm"):
        (folder / name).mkdir()
    # /usr/bin/env: the launcher has the library, this program's shell not.
    with Job(build, folder / "moved", 4000, more, units=256, prefix=["env", *(f"{k}={v}" for k, v in env.items())]) as job:
        while jumps < 20:
            wanted = 150 * (jumps + 1)
            if not job.follow(lambda: job.step >= wanted):
                break
            jumps += 1
            offset.write_text(f"{'-+'[jumps % 2]}{1 + jumps % 3}d")
        ended, moved, logs = job.ends(), job.last_values(), job.logs()
        restarts = job.restarts()
    seen = len(set(re.findall(r"\b20\d\d-\d\d-\d\d", logs)))
    amiss = len(re.findall(r"event=(?:worker_lost|lease_expired|rejoin|refused)", logs))
    with Job(build, folder / "calm", 4000, more, units=256) as job:
        job.ends()
        same = same_bytes(moved, job.last_values())
    return row("R14", f"{jumps} jumps of one to three days, {seen} days in the logs",
               f"{ended}, {'the same bytes' if same else 'OTHER bytes'}, {restarts} restarts, {amiss} tasks lost",
               "20 jumps, no event", jumps == 20 and seen > 1 and ended == "done" and same and restarts == 0 and amiss == 0)


# ---- R15

def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


class Idle:
    """`count` connections that send nothing; those that the other end closes are replaced."""

    def __init__(self, address, count):
        self.address, self.count = address, count
        self.sockets = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def fill(self):
        while len(self.sockets) < self.count:
            one = socket.socket()
            one.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                one.connect(self.address)
            self.sockets.append(one)

    def renew(self):
        kept = []
        for one in self.sockets:
            try:
                is_open = one.recv(1) != b""
            except BlockingIOError:
                is_open = True
            except OSError:
                is_open = False
            if is_open:
                kept.append(one)
            else:
                one.close()
        self.sockets = kept
        self.fill()

    def close(self):
        for one in self.sockets:
            one.close()
        self.sockets = []


def connections(build, folder, _seconds):
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    wanted = 10000
    if hard < wanted + 100:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted + 200, wanted + 200))
    else:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted + 100, hard))
    with Job(build, folder, 100000000, prefix=["prlimit", f"--nofile={LIMIT}:{LIMIT}"]) as job:
        job.has_stepped()
        calm = job.runs_for(5)
        record = json.loads((job.run / "launch.json").read_text())
        task = next(one for one in record["tasks"] if one["name"] == "ps/1")
        host, _, port = task["address"].rpartition(":")
        address = (socket.gethostbyname(host), int(port))
        pid = job.pids["ps/1"]
        # A step takes the ps some time: measured without connections, and subtracted.
        before, begin = cpu_seconds(pid), time.monotonic()
        job.runs_for(5)
        calm_cpu = (cpu_seconds(pid) - before) / (time.monotonic() - begin)
        with Idle(address, wanted) as idle:
            idle.fill()
            before, begin, first = cpu_seconds(pid), time.monotonic(), job.step
            most = 0
            while time.monotonic() < begin + 10:
                assert job.follow(lambda end=time.monotonic() + 0.5: time.monotonic() >= end), job.said()
                most = max(most, descriptors(pid))
            seconds = time.monotonic() - begin
            busy = (job.step - first) / seconds
            cpu = (cpu_seconds(pid) - before) / seconds
        freed = time.monotonic()
        recovered = None
        while recovered is None and time.monotonic() < freed + 60:
            with contextlib.suppress(OSError):
                with socket.create_connection(address, timeout=1) as one:
                    # Without a descriptor the ps would leave it in the kernel's queue.
                    one.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
                    with contextlib.suppress(ConnectionResetError):  # refused: that is an answer
                        one.recv(1)
                    recovered = time.monotonic() - freed
            job.follow(lambda end=time.monotonic() + 0.01: time.monotonic() >= end)
        assert job.step > first
    more = max(0.0, cpu - calm_cpu * busy / calm)
    return row("R15", f"{wanted} connections at a ps of {LIMIT} descriptors ({most} in use)",
               f"{busy / calm:.2f} of the steps a second, {100 * more:.1f} % of a core more, "
               f"answers {'never' if recovered is None else f'{recovered:.2f} s'} after they are gone",
               "no worker lost, below 5 % of a core, 1 s", busy > 0 and more < 0.05 and recovered is not None and recovered < 1)


# ---- R16

GROUP_BYTES = 1 << 29

# Takes memory in a control group until the kernel has killed a process there. Arguments: the
# group's folder, and the file that counts kills.
HOG = r"""
import pathlib, re, sys
group, counter = map(pathlib.Path, sys.argv[1:])
kills = lambda: int(re.search(r"^oom_kill (\d+)", counter.read_text(), re.M).group(1))
(group / "cgroup.procs").write_text("0")
before, held = kills(), []
while kills() == before:
    held.append(b"x" * (1 << 22))
"""


class MemoryGroup:
    """A control group, of version 1 or 2, that holds at most GROUP_BYTES. Owns its folder."""

    def __init__(self):
        first = pathlib.Path("/sys/fs/cgroup/memory")
        is_first = (first / "memory.limit_in_bytes").exists()
        self.path = (first if is_first else pathlib.Path("/sys/fs/cgroup")) / f"dtf-promises-{os.getpid()}"
        self.path.mkdir()
        (self.path / ("memory.limit_in_bytes" if is_first else "memory.max")).write_text(str(GROUP_BYTES))
        swap = self.path / ("memory.swappiness" if is_first else "memory.swap.max")
        if swap.exists():
            swap.write_text("0")
        self.counter = self.path / ("memory.oom_control" if is_first else "memory.events")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError):  # a process is still in it: the first error counts
            self.path.rmdir()

    def inside(self):
        """Words before a command that is to run in this group."""
        return ["sh", "-c", f'echo $$ >{self.path}/cgroup.procs && exec "$@"', "sh"]

    def fill(self, victim):
        """Returns when the kernel has killed `victim`, which comes before every other process."""
        pathlib.Path(f"/proc/{victim}/oom_score_adj").write_text("1000")
        subprocess.run([sys.executable, "-c", HOG, self.path, self.counter], check=True, timeout=PATIENCE)


def memory(build, folder, _seconds):
    settings = "durability: replica\n"
    more = "  replication: {mode: sync}\n  checkpoint: {every_seconds: 3600}\n"
    victims, steps = ("ps/1", "worker/1", "worker/0"), 8000
    for name in ("full", "calm"):
        (folder / name).mkdir()
    with MemoryGroup() as group, Job(build, folder / "full", steps, more, settings=settings, prefix=group.inside()) as job:
        for turn, name in enumerate(victims):
            assert job.follow(lambda step=steps // 5 * (turn + 1), name=name: job.step >= step and name in job.is_ready), job.said()
            group.fill(job.pids[name])
        ended, ours, restarts = job.ends(), job.last_values(), job.restarts()
        reported = [name for name in victims if re.search(rf"{name}\b.*by the kernel, for lack of memory", job.said())]
    with Job(build, folder / "calm", steps, more, settings=settings) as job:
        job.ends()
        same = same_bytes(ours, job.last_values())
    return row("R16", f"a control group is full three times; the kernel kills {', '.join(victims)}",
               f"{len(reported)} of {len(victims)} reported as that, {ended}, {'the same bytes' if same else 'OTHER bytes'}, "
               f"{restarts} restarts", "each reported, done, the same bytes, 3 restarts",
               len(reported) == len(victims) and ended == "done" and same and restarts == len(victims))


# ---- R17

STOPS = 60


def leftovers(folder):
    """The processes that name the folder in their arguments, this one aside."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if int(entry.name) != os.getpid() and str(folder).encode() in (entry / "cmdline").read_bytes():
                found.append(entry.name)
    return found


def stop(build, folder, _seconds):
    """Checkpoints and evaluations are under way most of the time."""
    more = "  replication: {mode: sync}\n  checkpoint: {every_steps: 100, keep: 2}\n  eval: {every_steps: 150}\n"
    steps, data = 1500, ", eval: {format: digits, count: 100}"
    draw, phases, amiss = random.Random(1), collections.Counter(), []

    def whole(place):
        with Job(build, place, steps, more, data=data) as job:
            return job.ends(), job.last_values(), job.said()

    (folder / "calm").mkdir()
    begin = time.monotonic()
    reference = whole(folder / "calm")
    length = time.monotonic() - begin
    for number in range(STOPS):
        place = folder / str(number)
        place.mkdir()
        with Job(build, place, steps, more, data=data) as job:
            end = time.monotonic() + draw.uniform(0, length)
            job.follow(lambda end=end: time.monotonic() >= end)
            phase = "of the start" if job.step == 0 else "of training"
            if number % 3 == 0 and job.step > 0 and "worker/0" in job.is_ready:
                phase = "while the chief is started again"
                with contextlib.suppress(ProcessLookupError):  # the job has just ended
                    os.kill(job.pids["worker/0"], signal.SIGKILL)
                job.follow(lambda end=time.monotonic() + draw.uniform(0, 0.5): time.monotonic() >= end)
            job.process.terminate()
            ended, code = job.ends(), job.process.wait()
            phase = "of the end" if ended == "done" else phase
            phases[phase] += 1
            reached, saved = (job.summary or {}).get("global_step"), job.last_values()
            is_saved = phase == "of the start" or (ended != "interrupted" and saved and saved[0].parent.name == f"step-{reached}")
            words = f"{number}: {phase}, '{ended}', code {code}, step {reached}, saved {[path.parent.name for path in saved[:1]]}"
        left = leftovers(place)
        again = whole(place)
        if not is_saved or left or again[0] != "done" or not same_bytes(again[1], reference[1]):
            amiss.append(f"{words}; {len(left)} processes left; started again: {again[0]}\n{again[2]}")
            print(amiss[-1], flush=True)
    counts = ", ".join(f"{count} {phase}" for phase, count in sorted(phases.items()))
    return row("R17", f"SIGTERM at {STOPS} moments: {counts}",
               f"{STOPS - len(amiss)} of {STOPS} saved at their last step and, started again, end with the same bytes",
               "all", not amiss)


# ---- R24

DEFAULT_SECONDS = 600  # between two checkpoints
BOUND = 0.035  # of the time


def checkpoints(build, folder, _seconds):
    """One job that never saves and one that saves every second, in turns."""
    rates, stalls, saved = {3600: [], 1: []}, [], 0
    watched = 10
    for turn in range(4):
        for seconds, seen in rates.items():
            place = folder / f"{turn}-{seconds}"
            place.mkdir()
            more = f"  replication: {{mode: sync}}\n  checkpoint: {{every_seconds: {seconds}, keep: 2}}\n"
            with Job(build, place, 100000000, more, units=4096) as job:
                job.has_stepped()
                job.runs_for(2)
                before = job.logs().count("event=checkpoint step=")
                seen.append(job.runs_for(watched))
                found = re.findall(r"event=checkpoint step=.* bytes=(\d+) .*stall_ms=([\d.]+)", job.logs())[before:]
                saved += len(found)
                stalls += [(float(stall), int(size)) for size, stall in found]
    kept = statistics.median(rates[1]) / statistics.median(rates[3600])
    cost = max(0.0, 1 - kept) * 4 * watched / saved
    share = cost / DEFAULT_SECONDS
    return row("R24", f"{saved} checkpoints of {stalls[0][1] / 1e6:.0f} MB in {4 * watched} s",
               f"{kept:.2f} of the steps a second, {cost:.2f} s for each, longest stall {max(stalls)[0]:.0f} ms; "
               f"at the default of {DEFAULT_SECONDS} s {100 * share:.2f} % of the time",
               f"at most {100 * BOUND:.1f} % at the default", share <= BOUND)


# ---- R23

def resident(pid):
    found = re.search(r"^VmRSS:\s+(\d+) kB", pathlib.Path(f"/proc/{pid}/status").read_text(), re.M)
    return int(found.group(1)) / 1024


def soak(build, folder, seconds):
    """Watches the processes that are never killed: dtf-launch, the ps, the chief."""
    settings = "launch: {restarts: {max: 1000}}\n"
    more = "  replication: {mode: async}\n  checkpoint: {every_seconds: 5, keep: 2}\n"
    with Job(build, folder, 1000000000, more, settings=settings) as job:
        job.has_stepped()
        looks, kills = [], 0
        begin = time.monotonic()
        while time.monotonic() < begin + seconds:
            job.runs_for(10)
            if "worker/1" in job.is_ready:
                os.kill(job.pids["worker/1"], signal.SIGKILL)
                job.is_ready.discard("worker/1")
                kills += 1
            pids = {"dtf-launch": job.process.pid, **{name: job.pids[name] for name in ("ps/0", "ps/1", "worker/0")}}
            looks.append({name: (descriptors(pid), resident(pid)) for name, pid in pids.items()})
    kept = True
    half, last = looks[len(looks) // 2 - 1], looks[-1]
    for name in last:
        files, mib = last[name][0] - half[name][0], last[name][1] - half[name][1]
        kept = row("R23", f"{name}, {seconds:.0f} s, worker/1 killed {kills} times", f"descriptors {files:+d}, memory {mib:+.1f} MiB "
                   f"(of {last[name][1]:.0f}) in the second half", "at most 4, 4 MiB", files <= 4 and mib <= 4) and kept
    return kept


PROMISES = {"disk": disk, "connections": connections, "clock": clock, "memory": memory, "stop": stop, "checkpoints": checkpoints,
            "soak": soak, "network": network}


def main():
    parser = argparse.ArgumentParser(add_help=False, usage=__doc__)
    parser.add_argument("build")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seconds", type=float, default=120)
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in PROMISES]
    if unknown:
        sys.exit(f"promises: error: no such promise: {unknown[0]}; there are {', '.join(PROMISES)}")
    if os.geteuid() != 0:
        sys.exit("promises: error: needs root, for mounts and a network namespace")
    print("\n".join(HEAD))
    kept = []
    for name, measure in PROMISES.items():  # the network is left last: there is no way back from its namespace
        if options.names and name not in options.names:
            continue
        with tempfile.TemporaryDirectory(prefix="dtf-promises-") as folder:
            kept.append(measure(os.path.abspath(options.build), pathlib.Path(folder), options.seconds))
    sys.exit(0 if all(kept) else 1)


if __name__ == "__main__":
    main()
