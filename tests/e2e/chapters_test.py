#!/usr/bin/env python3
"""The commands of README.md and of its chapters work: each block of commands ends with exit code 0.

The commands of a chapter run in one folder, in order, with the programs of a build in PATH and
the examples of configs/ beside them. tests/lint/chapters.py describes which blocks are run. Free
ports replace the ports that a chapter names, so that other tests may run at the same time. The
key reference of configs/README.md is compared with the program's.
Usage: chapters_test.py BUILD_FOLDER [CHAPTER...]
"""
import fcntl
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/lint"))
import chapters  # noqa: E402

BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
PATIENCE = 240  # seconds for one block, on a busy machine under no sanitizer
PORT = re.compile(r"localhost:(\d{4})\b")
FIRST_PORT, BLOCK_PORTS, BLOCKS = 20000, 100, 120  # as tests/e2e/port_blocks.cc


def locked_block():
    """The first port of a block that no other test has; its lock lasts as long as this process."""
    folder = pathlib.Path(tempfile.gettempdir()) / f"dtf-test-ports-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    start = random.randrange(BLOCKS)
    for i in range(BLOCKS):
        first = FIRST_PORT + (start + i) % BLOCKS * BLOCK_PORTS
        lock = os.open(folder / str(first), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return first
        except BlockingIOError:
            os.close(lock)
    raise RuntimeError("other tests hold all blocks of ports")


class Ports:
    """Maps the ports that a chapter names to free ones."""

    def __init__(self):
        self.next, self.taken = locked_block(), {}

    def free(self):
        while True:
            self.next += 1
            with socket.socket() as probe:
                try:
                    probe.bind(("127.0.0.1", self.next - 1))
                    return self.next - 1
                except OSError:
                    continue

    def replaced(self, text):
        return PORT.sub(lambda match: f"localhost:{self.taken.setdefault(match.group(1), None) or self.given(match.group(1))}", text)

    def given(self, port):
        self.taken[port] = self.free()
        return self.taken[port]


class Place:
    """A folder for the commands of one chapter."""

    def __init__(self, folder):
        self.folder, self.ports = folder, Ports()
        for name in ("clusters", "jobs", "graphs"):
            shutil.copytree(ROOT / "configs" / name, folder / "configs" / name)
        for file in (folder / "configs/clusters").iterdir():
            file.write_text(self.ports.replaced(file.read_text()))
        (folder / "scripts").symlink_to(ROOT / "scripts")
        (folder / "home/run").mkdir(parents=True, mode=0o700)
        programs = [BUILD / "launcher", BUILD / "daemons/psd", BUILD / "daemons/workerd"]
        self.environment = {"PATH": ":".join(map(str, programs)) + ":" + os.environ["PATH"], "HOME": str(folder / "home"),
                            "XDG_RUNTIME_DIR": str(folder / "home/run"), "LC_ALL": "C.UTF-8"}

    def start(self, command):
        return subprocess.Popen(["bash", "-euo", "pipefail", "-c", command], cwd=self.folder, env=self.environment,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")

    def run(self, block):
        """(exit code, output) of each command that failed."""
        text = self.ports.replaced(block.text)
        commands = text.splitlines() if block.mark == "terminals" else [text]
        processes = [self.start(command) for command in commands]
        ended = []
        for process in processes:
            try:
                output = process.communicate(timeout=PATIENCE)[0]
            except subprocess.TimeoutExpired:
                process.kill()
                output = process.communicate()[0] + f"\nstill running after {PATIENCE} s\n"
            ended.append((process.returncode, output))
        return [(code, output) for code, output in ended if code != 0]

    def end_all(self):
        """Kills the processes that a failed block left running here."""
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if (process / "cwd").resolve() == self.folder and int(process.name) != os.getpid():
                    os.kill(int(process.name), signal.SIGKILL)
            except OSError:
                continue


def runnable(text):
    for block in chapters.blocks(text):
        if block.mark == "file" or (block.language == "sh" and block.mark in ("", "terminals")):
            yield block


class Chapters(unittest.TestCase):
    def check(self, name):
        with tempfile.TemporaryDirectory() as folder:
            place = Place(pathlib.Path(folder).resolve())
            try:
                for block in runnable((ROOT / name).read_text()):
                    if block.mark == "file":
                        (place.folder / block.words).write_text(block.text)
                        continue
                    for code, output in place.run(block):
                        self.fail(f"{name}:{block.line}: exit code {code}\n{block.text}\n{output}")
            finally:
                place.end_all()

    def test_the_key_reference_is_what_the_program_reads(self):
        done = subprocess.run([sys.executable, ROOT / "scripts/key-reference.py", BUILD / "launcher/dtf-launch"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


def add(name):
    setattr(Chapters, "test_" + re.sub(r"\W", "_", name), lambda self: self.check(name))


asked = [word for word in sys.argv[1:] if word.endswith(".md")]
sys.argv = [word for word in sys.argv if word not in asked]
for chapter in asked or chapters.chapters(ROOT):
    if any(runnable((ROOT / chapter).read_text())):
        add(chapter)
unittest.main()
