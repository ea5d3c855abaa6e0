#!/usr/bin/env python3
"""What a newcomer types after reading README.md, and must see: a table of customers, a table with
a number to learn, a folder of images, mistakes, Ctrl-C, and a killed worker.

Each test is a sequence of commands in a folder of its own, with the programs of a build in PATH.
The data are drawn here from fixed seeds, with the faults of real data: gaps, 'N/A', a damaged file.
Usage: tried_test.py BUILD_FOLDER [TEST...]
"""
import json
import os
import pathlib
import random
import re
import shlex
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import unittest
import zlib

BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
PATIENCE = 120  # seconds for one command, on a busy machine
BAD_DATA, BAD_JOB, BAD_COMMAND, NOT_RUNNING, STOPPED = 65, 78, 2, 3, 128 + signal.SIGINT
CLUSTER = '"cluster={ps: [localhost:auto, localhost:auto], worker: [localhost:auto, localhost:auto]}"'
EVALUATED = r"evaluation at step \d+"


def customers(count):
    """Lines of a table: the young leave, unless a good plan keeps some of them."""
    draw = random.Random(1)
    yield "customer_id,since,age,income,plan,region,churned"
    for i in range(count):
        age, plan = draw.randint(18, 80), draw.choice(["basic", "plus", "pro"])
        leaves = age < 40 and not (plan == "pro" and draw.random() < 0.5)
        since = f"20{draw.randint(10, 25)}-{draw.randint(1, 12):02}-{draw.randint(1, 28):02}"
        income = "N/A" if draw.random() < 0.05 else f"{draw.gauss(3000, 800):.2f}"
        shown_age = "" if draw.random() < 0.05 else age
        yield f"C{i:05},{since},{shown_age},{income},{plan},{draw.choice(['north', 'south', ''])},{'yes' if leaves else 'no'}"


def houses(count):
    draw = random.Random(2)
    for _ in range(count):
        area, garden = draw.randint(30, 200), draw.choice(["yes", "no"])
        yield area, 1 + area // 30, garden, round(2.5 * area + (60 if garden == "yes" else 0) + draw.gauss(0, 8), 1)


def png(rows):
    """The bytes of a grey image."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    header = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 0, 0, 0, 0)
    pixels = zlib.compress(b"".join(b"\0" + bytes(row) for row in rows))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def striped(draw, is_upright):
    return [[(160 if (x if is_upright else y) // 3 % 2 else 60) + draw.randint(-40, 40) for x in range(12)] for y in range(12)]


class Running:
    """A command that runs. The test ends it, or its deadline does."""

    def __init__(self, process):
        self.process, self.seen = process, ""
        self.deadline = threading.Timer(PATIENCE, process.kill)
        self.deadline.start()

    def wait_for(self, pattern):
        for line in self.process.stdout:
            self.seen += line
            found = re.search(pattern, line)
            if found:
                return found
        raise AssertionError(f"the command ended without {pattern!r}:\n{self.seen}")

    def ended(self):
        """(exit code, all that it printed)"""
        self.seen += self.process.stdout.read()
        code = self.process.wait()
        self.deadline.cancel()
        return code, self.seen

    def close(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.process.stdout.read()  # to the end: its tasks are gone, too
        self.process.wait()
        self.process.stdout.close()
        self.deadline.cancel()


class Tried(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()
        (self.folder / "home/run").mkdir(parents=True, mode=0o700)
        programs = [BUILD / "launcher", BUILD / "daemons/psd", BUILD / "daemons/workerd"]
        self.environment = {"PATH": ":".join(map(str, programs)) + ":" + os.environ["PATH"], "HOME": str(self.folder / "home"),
                            "XDG_RUNTIME_DIR": str(self.folder / "home/run"), "LC_ALL": "C.UTF-8"}

    def write(self, name, text):
        (self.folder / name).write_text(text)

    def start(self, command):
        running = Running(subprocess.Popen(shlex.split(command), cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
                                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"))
        self.addCleanup(running.close)
        return running

    def types(self, command, *patterns, code=0):
        """Runs the command, and returns what it printed, in which each pattern must be found."""
        ended, output = self.start(command).ended()
        self.assertEqual(ended, code, f"{command}\n{output}")
        for pattern in patterns:
            self.assertRegex(output, pattern, command)
        return output

    def table(self, command):
        """The rows that `predict` prints, as dicts by column."""
        lines = [line for line in self.types(command).splitlines() if not line.startswith("dtf-launch: ")]
        columns = lines[0].removeprefix("# ").split("\t")
        return [dict(zip(columns, line.split("\t"), strict=True)) for line in lines[1:]]

    def interrupt(self, job):
        """Presses Ctrl-C. The step that the job saved then."""
        job.process.send_signal(signal.SIGINT)
        code, output = job.ended()
        self.assertEqual(code, STOPPED, output)
        saved = re.search(r"checkpoint step (\d+); the same command goes on from it", output)
        self.assertTrue(saved, output)
        return int(saved.group(1))

    def start_with_customers(self):
        lines = list(customers(1000))
        self.write("customers.csv", "\n".join(lines) + "\n")
        self.types("dtf-launch init --data customers.csv --target churned", "customer_id +left out", r"age +numbers, \d+ missing",
                   "income +numbers", "churned +learnt: 2 classes", "dtf-launch customers.yaml")
        return lines

    def test_customers(self):
        lines = self.start_with_customers()
        self.types("dtf-launch check customers.yaml", "customers.yaml: OK")
        output = self.types("dtf-launch customers.yaml", "customers: done")
        self.assertNotIn("left out", output, "gaps are filled")
        stays = sum(line.endswith(",no") for line in lines[1:]) / 1000
        accuracy = re.search(r"accuracy ([\d.]+)", self.types("dtf-launch eval customers.yaml"))
        self.assertGreater(float(accuracy.group(1)), max(stays, 1 - stays) + 0.05)

        self.write("new.csv", "customer_id,since,age,income,plan,region\nN1,2020-01-01,22,2500,basic,north\n"
                   "N2,2021-02-03,70,3100.5,pro,\nN3,2022-03-04,50,N/A,plus,south\nN4,2022-03-04,old,3000,plus,south\n")
        young, old, filled, unknown = self.table("dtf-launch predict customers.yaml --input new.csv --keep customer_id")
        self.assertEqual([row["customer_id"] for row in (young, old, filled, unknown)], ["N1", "N2", "N3", "N4"])
        self.assertEqual((young["class_name"], old["class_name"]), ("yes", "no"))
        self.assertGreater(float(young["p(yes)"]), 0.5)
        self.assertLess(float(old["p(yes)"]), 0.5)
        self.assertLess(float(filled["p(yes)"]), 1, "its income is filled, as in the training data")
        self.assertRegex(unknown["p(yes)"], r"error: new.csv:5:\d+: 'old' in column 'age'")
        self.types("dtf-launch customers.yaml", "done already at step")

    def test_a_number_to_learn(self):
        rows = list(houses(600))
        self.write("houses.csv", "area;rooms;garden;price\n" + "".join(";".join(map(str, row)) + "\n" for row in rows))
        self.types("dtf-launch init --data houses.csv --target price", "divided by ';'", "price +learnt: numbers")
        self.types("dtf-launch houses.yaml", "houses: done")
        error = re.search(r"mean_absolute_error ([\d.]+)", self.types("dtf-launch eval houses.yaml"))
        self.assertLess(float(error.group(1)), statistics.pstdev(row[3] for row in rows) / 2)
        self.write("new.csv", "area;rooms;garden\n50;2;yes\n100;4;no\n150;6;yes\n")
        prices = [float(row["outputs"]) for row in self.table("dtf-launch predict houses.yaml --input new.csv")]
        for price, expected in zip(prices, (185, 250, 435), strict=True):
            self.assertAlmostEqual(price, expected, delta=40)

    def test_a_folder_of_images(self):
        draw = random.Random(3)
        for name in ("bars", "stripes"):
            (self.folder / "images" / name).mkdir(parents=True)
            for i in range(30):
                (self.folder / f"images/{name}/{i:02}.png").write_bytes(png(striped(draw, name == "bars")))
        damaged = self.folder / "images/bars/07.png"
        damaged.write_bytes(damaged.read_bytes()[:60])

        self.types("dtf-launch init --data images", "60 images of 2 classes", "images/bars/07.png: damaged PNG")
        self.types("dtf-launch images.yaml", "images: done", r"left out +1 of \d+ records.*images/bars/07.png")
        rows = {row["file"]: row for row in self.table("dtf-launch predict images.yaml --input images")}
        files = {str(file.relative_to(self.folder)) for file in (self.folder / "images").glob("*/*")}
        self.assertEqual(set(rows), files)
        self.assertIn("error: images/bars/07.png: damaged PNG", rows.pop("images/bars/07.png")["p(stripes)"])
        right = sum(row["class_name"] == file.split("/")[1] for file, row in rows.items())
        self.assertGreaterEqual(right, 55, "of 59 images that can be read")

    def test_wrong_turns(self):
        self.start_with_customers()
        job = (self.folder / "customers.yaml").read_text()
        line = 1 + job[:job.index("[age, income]")].count("\n")
        self.write("misspelt.yaml", job.replace("[age, income]", "[age, incom]"))
        for verb in ("check ", ""):
            self.types(f"dtf-launch {verb}misspelt.yaml", rf"misspelt.yaml:{line}:\d+: error: .*'incom'.* did you mean 'income'\?",
                       code=BAD_JOB)
        self.types("dtf-launch absent.yaml", "absent.yaml: .*No such file", code=BAD_JOB)
        self.write("empty.csv", "")
        self.types("dtf-launch init --data empty.csv --target churned", "empty.csv: error: the file is empty", code=BAD_DATA)
        self.types("dtf-launch init --data customers.csv --target churn -o other.yaml",
                   r"customers.csv.*no column 'churn' - did you mean 'churned'\?", code=BAD_COMMAND)
        self.types("dtf-launch eval customers.yaml", "no checkpoint in runs/customers.*train first", code=BAD_DATA)
        left = {file.name for file in self.folder.iterdir()} - {"home"}
        self.assertEqual(left, {"customers.csv", "customers.yaml", "misspelt.yaml", "empty.csv"}, "no mistake leaves files")

    def test_ctrl_c_and_on(self):
        self.start_with_customers()
        command = "dtf-launch customers.yaml --set train.epochs=100000"
        first = self.start(command)
        first.wait_for(EVALUATED)
        saved = self.interrupt(first)
        self.types("dtf-launch status customers.yaml", f"stopped at step {saved}, ", code=NOT_RUNNING)

        second = self.start(command)
        second.wait_for(EVALUATED)
        self.assertIn(f"going on from the checkpoint of step {saved} ", second.seen)
        self.types("dtf-launch status customers.yaml", "customers: running", r"worker/0 +pid \d+ +running +step \d+")
        self.assertGreater(self.interrupt(second), saved)

    def test_a_killed_worker(self):
        self.start_with_customers()
        job = self.start(f"dtf-launch customers.yaml --set {CLUSTER} --set train.epochs=200")
        job.wait_for("2 ps, 2 workers")
        job.wait_for(EVALUATED)
        tasks = json.loads((self.folder / "runs/customers/launch.json").read_text())["tasks"]
        pids = {task["name"]: task["pid"] for task in tasks}
        self.assertEqual(set(pids), {"ps/0", "ps/1", "worker/0", "worker/1"})
        os.kill(pids["worker/1"], signal.SIGKILL)
        code, output = job.ended()
        self.assertEqual(code, 0, output)
        self.assertRegex(output, "worker/1 was killed by SIGKILL")
        self.assertRegex(output, "customers: done")
        summary = json.loads((self.folder / "runs/customers/summary.json").read_text())
        self.assertEqual({task["name"]: task["restarts"] for task in summary["tasks"]},
                         {"ps/0": 0, "ps/1": 0, "worker/0": 0, "worker/1": 1})


unittest.main()
