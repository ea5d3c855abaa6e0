"""Tasks that serve, for tests in Python: processes of psd and workerd."""
import fcntl
import os
import pathlib
import random
import socket
import subprocess
import tempfile
import threading

PATIENCE = 120  # seconds, on a busy machine


FIRST_PORT, BLOCK_PORTS, BLOCKS = 20000, 100, 120
_locks, _left = [], []  # files that this process has locked; ports of their blocks


def free_ports(count):
    """Ports that no other test process gets, and below the range that the kernel gives to clients: of blocks that are locked as
    tests/e2e/port_blocks.cc does."""
    ports = []
    while len(ports) < count:
        if not _left:
            _left.extend(reversed(range(*_block())))
        port = _left.pop()
        with socket.socket() as tried:
            try:
                tried.bind(("127.0.0.1", port))
            except OSError:
                continue
        ports.append(port)
    return ports


def _block():
    """Locks a block, until this process ends. Returns its first port and its end."""
    folder = pathlib.Path(tempfile.gettempdir()) / f"dtf-test-ports-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    start = random.randrange(BLOCKS)  # a block that was given back a moment ago may have connections that linger
    for index in range(BLOCKS):
        first = FIRST_PORT + (start + index) % BLOCKS * BLOCK_PORTS
        lock = open(folder / str(first), "a", encoding="ascii")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            continue
        _locks.append(lock)
        return first, first + BLOCK_PORTS
    raise RuntimeError("other tests hold all blocks of ports")


class Cluster:
    """A ps and a worker that serve, each a process. Stopped at its end."""

    def __init__(self, folder, launch):
        self.ports, self.build = free_ports(2), pathlib.Path(launch).resolve().parents[1]
        file = pathlib.Path(folder) / "cluster.yaml"
        file.write_text(f"cluster: {{ps: [localhost:{self.ports[0]}], worker: [localhost:{self.ports[1]}]}}\n")
        self.file = file
        self.tasks = {"ps": self.start("psd"), "worker": self.start("workerd")}
        self.target = f"dtf://localhost:{self.ports[1]}"

    def start(self, program):
        """Returns the process once it serves."""
        task = subprocess.Popen([self.build / "daemons" / program / program, "--cluster", str(self.file), "--task", "0", "--serve"], stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        end = threading.Timer(PATIENCE, task.kill)
        end.start()
        lines = []
        for line in task.stderr:
            lines.append(line)
            if "event=serving" in line:
                break
        else:
            raise AssertionError(f"{program} ended: {''.join(lines)}")
        end.cancel()
        threading.Thread(target=task.stderr.read, daemon=True).start()
        return task

    def close(self):
        for task in self.tasks.values():
            task.terminate()
        for task in self.tasks.values():
            task.wait(PATIENCE)
            task.stderr.close()
