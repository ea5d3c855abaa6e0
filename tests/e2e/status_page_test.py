#!/usr/bin/env python3
"""The status page in a real browser: it shows a training job as the tasks report it, and a
screenshot of it is not empty.
Usage: status_page_test.py BUILD_FOLDER [PICTURE.png]      exit code 77: there is no Chromium here

Chromium's clock runs ahead (--virtual-time-budget), so that the page polls several times.
"""
import html.parser
import json
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
import zlib

PATIENCE = 60
JOB = """job: shown
run_dir: {folder}/run
cluster: {{ps: [localhost:auto, localhost:auto], worker: [localhost:auto, localhost:auto]}}
metrics: {{port: {port}}}
train:
  model: {{input: {{shape: [28, 28, 1]}}, layers: [flatten: , dense: {{units: 10}}], loss: sparse_categorical_crossentropy}}
  steps: 100000000
"""
TASKS = ["ps/0", "ps/1", "worker/0", "worker/1"]


def free_ports(count):
    """The first of `count` consecutive ports without a listener."""
    for first in range(20000, 30000, 16):
        sockets = [socket.socket() for _ in range(count)]
        try:
            for i, each in enumerate(sockets):
                each.bind(("127.0.0.1", first + i))
            return first
        except OSError:
            continue
        finally:
            for each in sockets:
                each.close()
    sys.exit("no free ports")


def said_by(port):
    try:
        return json.load(urllib.request.urlopen(f"http://localhost:{port}/status.json", timeout=5))
    except OSError:
        return None


def await_true(what, ask):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        answer = ask()
        if answer:
            return answer
        time.sleep(0.1)
    sys.exit(f"waited {PATIENCE} s in vain for {what}")


class Page(html.parser.HTMLParser):
    """`values` by (task or None, name); `points` of the curve; `looks` of the page; the text of `job`."""

    def __init__(self, text):
        super().__init__()
        self.values, self.points, self.looks, self.texts = {}, 0, 0, {}
        self.task = self.open = None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        known = dict(attributes)
        if tag == "tr":
            self.task = known.get("data-task")
        if tag == "body":
            self.looks = int(known.get("data-looks", 0))
        if tag == "svg":
            self.points = int(known.get("data-points", 0))
        if "data-value" in known:
            self.open = (self.task if tag == "td" else None, known["data-value"])
            self.values[self.open] = ""
        elif known.get("id") in ("job", "status"):
            self.open = known["id"]
            self.texts[self.open] = ""

    def handle_endtag(self, tag):
        self.open = None

    def handle_data(self, data):
        if isinstance(self.open, tuple):
            self.values[self.open] += data
        elif self.open:
            self.texts[self.open] += data


def rows(picture):
    """How many different rows of pixels a PNG has; a blank page has 1."""
    data, chunks, at = picture.read_bytes(), b"", 8
    while at < len(data):
        size = int.from_bytes(data[at:at + 4], "big")
        if data[at + 4:at + 8] == b"IDAT":
            chunks += data[at + 8:at + 8 + size]
        at += 12 + size
    width = int.from_bytes(data[16:20], "big")
    raw = zlib.decompress(chunks)
    line = len(raw) // int.from_bytes(data[20:24], "big")
    assert line > width
    return len({raw[i:i + line] for i in range(0, len(raw), line)})


def browse(browser, folder, url, *options):
    done = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={folder}/profile",
                           "--virtual-time-budget=8000", *options, url], capture_output=True, text=True, timeout=PATIENCE)
    if done.returncode != 0:
        sys.exit(f"{browser}: {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


def expect(is_so, what):
    if not is_so:
        sys.exit(f"error: {what}")


def check(browser, folder, port, picture):
    chief = port + TASKS.index("worker/0")
    await_true("points of the curve", lambda: len((said_by(chief) or {"history": {"step": []}})["history"]["step"]) >= 3)
    step_before = next(m[2] for m in said_by(chief)["metrics"] if m[0] == "dtf_global_step")
    page = Page(browse(browser, folder, f"http://127.0.0.1:{port}/", "--dump-dom"))  # of ps/0, by the address that its log says
    step_after = next(m[2] for m in said_by(chief)["metrics"] if m[0] == "dtf_global_step")
    expect(page.texts["job"] == "shown", page.texts)
    expect(page.texts["status"].startswith("worker/0: step "), page.texts)
    expect(page.looks >= 2, f"it looked {page.looks} times")
    expect(page.points >= 3, f"{page.points} points")
    step = int(page.values[None, "step"].split(" of ")[0])
    expect(step_before <= step <= step_after, f"{step_before} <= {step} <= {step_after}")
    expect(float(page.values[None, "loss"]) > 0, page.values)
    for task in TASKS:
        for name in ("state", "step", "memory"):
            expect(page.values.get((task, name)), f"{task}: no {name}: {page.values}")
    for task in ("worker/0", "worker/1"):
        expect(page.values.get((task, "step_time")), f"{task}: no time of a step: {page.values}")
        for phase in ("data", "compute", "send", "wait"):
            expect(page.values.get((task, phase)), f"{task}: no time of {phase}: {page.values}")
        expect(page.values.get((task, "stale")), f"{task}: no stale batches: {page.values}")
    for task in ("ps/0", "ps/1"):
        expect(page.values.get((task, "staleness")), f"{task}: no staleness: {page.values}")
        expect("iB" in page.values.get((task, "received"), ""), f"{task}: no bytes: {page.values}")
    browse(browser, folder, f"http://localhost:{chief}/", "--window-size=1200,800", f"--screenshot={picture}")
    expect(rows(pathlib.Path(picture)) > 50, "the picture is blank")
    print(f"the page shows step {step} of the job, {page.points} points, {len(TASKS)} tasks; picture: {rows(pathlib.Path(picture))} different rows")


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if not browser:
        print("SKIPPED: there is no Chromium: scripts/install-deps.sh --browser installs it")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        port = free_ports(len(TASKS))
        cluster = pathlib.Path(folder, "cluster.yaml")
        cluster.write_text(JOB.format(folder=folder, port=port))
        job = subprocess.Popen([build / "launcher/dtf-launch", "-q", cluster], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            check(browser, folder, port, sys.argv[2] if len(sys.argv) > 2 else f"{folder}/page.png")
        finally:
            job.terminate()
            job.wait(PATIENCE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
