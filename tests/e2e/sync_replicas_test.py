#!/usr/bin/env python3
"""The example sync_replicas: two workers, two ps, and each of them killed. Usage: sync_replicas_test.py BUILD PROGRAM

The batch follows from the global step and the rank, so every run ends with the bits of the
undisturbed one.
"""
import os
import pathlib
import random
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

# Meson gives the program relative to the build folder; the clients run elsewhere.
BUILD, PROGRAM = pathlib.Path(sys.argv[1]), str(pathlib.Path(sys.argv[2]).resolve())
SEED = int(sys.argv[3]) if len(sys.argv) > 3 else random.randrange(1 << 30)
STEPS = 800
WITHIN = 120
# The failpoint of common/base/failpoint.cc that paces a client, so that a run is not over before
# its faults: at least so many milliseconds for a step.
PACE = "supervisor.before_step=sleep:3"


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


class Cluster:
    """Two ps that serve, and the programs of a run. All are killed at its end."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()
        self.ports = free_ports(3)
        self.file = folder / "cluster.yaml"
        ps = ", ".join(f"localhost:{port}" for port in self.ports[:2])
        self.file.write_text(f"job: sync\ncluster:\n  ps: [{ps}]\n  worker: [localhost:{self.ports[2]}]\n")
        self.started = []
        self.kills = 0
        self.ps = [self.start_ps(0), self.start_ps(1)]

    def start(self, command, name, failpoints=""):
        path = self.folder / f"{name}.{len(self.started)}.log"
        environment = dict(os.environ, DTF_FAILPOINTS=failpoints)
        with path.open("w") as out:
            process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, cwd=self.folder, env=environment)
        process.log = path
        self.started.append(process)
        return process

    def start_ps(self, index, failpoints=""):
        command = [BUILD / "daemons/psd/psd", "--cluster", self.file, "--task", str(index), "--serve"]
        process = self.start(command, f"ps{index}", failpoints)
        wait_for(process, "event=serving")
        return process

    def client(self, rank, steps=STEPS, workers=2, failpoints=""):
        targets = [f"dtf://localhost:{port}" for port in self.ports[:2]]
        return self.start([PROGRAM, str(rank), str(workers), str(steps), "log", *targets], f"client{rank}", failpoints)

    def restart_ps(self, index):
        self.kill(self.ps[index])
        self.ps[index] = self.start_ps(index)

    def kill(self, process):
        """Kills a process that runs, and counts it."""
        assert process.poll() is None, f"{process.args} had ended before it was killed:\n{text_of(process)}"
        process.kill()
        assert process.wait(WITHIN) == -signal.SIGKILL
        self.kills += 1

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.wait()


def text_of(process):
    return process.log.read_text()


def wait_for(process, text):
    deadline = time.monotonic() + WITHIN
    while text not in text_of(process):
        assert process.poll() is None, f"{process.args} ended without '{text}':\n{text_of(process)}"
        assert time.monotonic() < deadline, f"no '{text}' in {WITHIN} s:\n{text_of(process)}"
        time.sleep(0.02)


def ended(process):
    code = process.wait(WITHIN)
    assert code == 0, f"{process.args} ended with {code}:\n{text_of(process)}"
    return text_of(process)


def result_of(text):
    found = re.search(r"step (\d+): .* checksum ([0-9a-f]{16})", text)
    assert found, text
    return int(found[1]), found[2]


def wait_for_checkpoint(cluster, beyond=0):
    """Waits for a checkpoint of a step after `beyond`; returns its step."""
    deadline = time.monotonic() + WITHIN
    while True:
        names = [re.fullmatch(r"step-(\d+)", each.name) for each in (cluster.folder / "log/checkpoints").glob("step-*")]
        steps = [int(name[1]) for name in names if name]
        if steps and max(steps) > beyond:
            return max(steps)
        assert time.monotonic() < deadline, "\n".join(text_of(each) for each in cluster.started)
        time.sleep(0.02)


def undisturbed(folder):
    with Cluster(folder) as cluster:
        clients = [cluster.client(1), cluster.client(0)]
        texts = [ended(each) for each in clients]
        step, checksum = result_of(texts[1])
        assert step == STEPS
        check_events(cluster.folder / "log")
        return checksum


def check_events(log):
    """The chief writes scalars, in TensorFlow's framing."""
    files = list(log.glob("events.out.tfevents.*"))
    assert len(files) == 1, files
    data, records = files[0].read_bytes(), []
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        records.append(data[12:12 + length])
        data = data[16 + length:]
    text = b"".join(records)
    assert b"global_step/sec" in text and b"checkpoints/step-" in text, records[:5]


def killed_ps(folder, index):
    with Cluster(folder) as cluster:
        clients = [cluster.client(0), cluster.client(1, failpoints=PACE)]
        wait_for_checkpoint(cluster)
        cluster.restart_ps(index)
        texts = [ended(each) for each in clients]
        assert cluster.kills == 1
        assert all("goes on from step" in text for text in texts), texts
        return result_of(texts[0])


def killed_clients(folder, draw):
    """Each client is killed several times, at any point of its step, and started again."""
    with Cluster(folder) as cluster:
        clients = [cluster.client(rank, failpoints=PACE) for rank in (0, 1)]
        step = 0
        for rank in (1, 0, 1):
            step = wait_for_checkpoint(cluster, step)
            time.sleep(draw.random() * 0.05)
            cluster.kill(clients[rank])
            clients[rank] = cluster.client(rank, failpoints=PACE)
            wait_for(clients[rank], f"worker {rank} begins at step")
        texts = [ended(each) for each in clients]
        assert cluster.kills == 3
        return result_of(texts[0])


def stopped_and_continued(folder):
    """SIGTERM saves; the next run begins there, on new tasks."""
    with Cluster(folder) as cluster:
        clients = [cluster.client(0, 10 ** 9), cluster.client(1, 10 ** 9)]
        wait_for_checkpoint(cluster)
        for each in clients:
            each.send_signal(signal.SIGTERM)
        text = ended(clients[0])
        step, _ = result_of(text)
        clients[1].send_signal(signal.SIGTERM)
        clients[1].wait(WITHIN)
        for index in (0, 1):
            cluster.restart_ps(index)
        assert cluster.kills == 2
        if step >= STEPS:
            return None
        clients = [cluster.client(0), cluster.client(1)]
        texts = [ended(each) for each in clients]
        assert f"worker 0 begins at step {step}" in texts[0], (step, texts)
        return result_of(texts[0])


def stopped_before_its_end(root):
    """A fast machine may come to the last step before the signal does: then there is nothing to go on with."""
    for attempt in range(5):
        if (got := stopped_and_continued(root / f"stopped{attempt}")) is not None:
            return got
    raise AssertionError("five runs ended before their signal: give them more steps")


def main():
    print(f"seed {SEED}", flush=True)
    draw = random.Random(SEED)
    with tempfile.TemporaryDirectory() as temporary:
        root = pathlib.Path(temporary)
        checksum = undisturbed(root / "undisturbed")
        for name, result in (
            ("ps/0 killed", lambda: killed_ps(root / "ps0", 0)),
            ("ps/1 killed", lambda: killed_ps(root / "ps1", 1)),
            ("clients killed", lambda: killed_clients(root / "clients", draw)),
            ("stopped and continued", lambda: stopped_before_its_end(root)),
        ):
            begin = time.monotonic()
            got = result()
            assert got == (STEPS, checksum), f"{name}: {got}, undisturbed {checksum}"
            print(f"{name}: {got}, {time.monotonic() - begin:.1f} s", flush=True)


if __name__ == "__main__":
    main()
