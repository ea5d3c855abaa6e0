#!/usr/bin/env python3
"""The steps of a real job at an OpenTelemetry collector (Python's HTTP server, in this process):
its requests follow the protocol's JSON, and a ps's spans are children of the worker's step that
caused them. Then a collector that reads everything and never replies: the job still trains to
its end, and counts the dropped spans.
Usage: traces_test.py BUILD_FOLDER
"""
import http.server
import json
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

PATIENCE = 90
EVERY = 10
STEPS = 200
JOB = """job: traced
run_dir: {folder}/run
cluster: {{ps: [localhost:auto, localhost:auto], worker: [localhost:auto, localhost:auto]}}
metrics: {{port: auto}}
traces: {{endpoint: "http://127.0.0.1:{port}", every_steps: {every}}}
train:
  model: {{input: {{shape: [28, 28, 1]}}, layers: [flatten: , dense: {{units: 10}}], loss: sparse_categorical_crossentropy}}
  data: {{train: {{format: digits, count: 600}}, batch_size: 20}}
  replication: {{mode: {mode}}}
  steps: {steps}
"""


class Collector(http.server.BaseHTTPRequestHandler):
    taken = []  # (resource's attributes, span)
    lock = threading.Lock()

    def do_POST(self):
        assert self.path == "/v1/traces", self.path
        assert self.headers["Content-Type"] == "application/json"
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.lock:
            for of_resource in body["resourceSpans"]:
                resource = attributes(of_resource["resource"]["attributes"])
                for scope in of_resource["scopeSpans"]:
                    assert scope["scope"]["name"] == "dtf"
                    self.taken.extend((resource, span) for span in scope["spans"])
        answer = b"{}"
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *words):
        pass


def attributes(pairs):
    """A dict of OTLP's key-value pairs, which have 64-bit numbers as text."""
    values = {}
    for pair in pairs:
        (kind, value), = pair["value"].items()
        assert kind in ("stringValue", "intValue") and isinstance(value, str), pair
        values[pair["key"]] = int(value) if kind == "intValue" else value
    return values


def launch(build, folder, port, mode, steps, every, more=()):
    cluster = pathlib.Path(folder) / "job.yaml"
    cluster.write_text(JOB.format(folder=folder, port=port, mode=mode, steps=steps, every=every))
    return subprocess.Popen([build / "launcher/dtf-launch", cluster, "-q", *more], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True), cluster


def check_span(span):
    assert re.fullmatch("[0-9a-f]{32}", span["traceId"]) and int(span["traceId"], 16), span
    assert re.fullmatch("[0-9a-f]{16}", span["spanId"]) and int(span["spanId"], 16), span
    begin, end = int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"])
    assert isinstance(span["startTimeUnixNano"], str) and begin <= end, span
    assert abs(begin / 1e9 - time.time()) < 600, span
    assert span["kind"] in (1, 2), span


def taken_of(mode, build):
    """The spans of a whole job."""
    Collector.taken = []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        job, _ = launch(build, folder, server.server_port, mode, STEPS, EVERY)
        _, said = job.communicate(timeout=PATIENCE)
        assert job.returncode == 0, said
    server.shutdown()
    return Collector.taken


def check_traces(mode, build):
    taken = taken_of(mode, build)
    spans = {span["spanId"]: (resource, span) for resource, span in taken}
    assert len(spans) == len(taken), "two spans of one name"
    roots, of_ps = [], []
    for resource, span in taken:
        check_span(span)
        is_ps = resource["service.name"] == "psd"
        assert resource["dtf.job"] == "traced" and resource["process.pid"] > 1
        assert resource["service.instance.id"].split("/")[0] == ("ps" if is_ps else "worker"), resource
        assert attributes(span["attributes"])["dtf.step"] % EVERY == 0
        (of_ps if is_ps else roots if span["name"] == "step" else []).append((resource, span))
        assert ("parentSpanId" in span) == (span["name"] != "step"), span
    assert {resource["service.instance.id"] for resource, _ in roots} == {"worker/0", "worker/1"}
    if mode == "sync":
        assert sorted(attributes(span["attributes"])["dtf.step"] for _, span in roots) == sorted(
            2 * list(range(0 if any(attributes(s["attributes"])["dtf.step"] == 0 for _, s in roots) else EVERY, STEPS,
                           EVERY))), "each worker, each step"
    assert len({span["traceId"] for _, span in roots}) == len(roots), "each step is a trace of its own"
    assert {resource["service.instance.id"] for resource, _ in of_ps} == {"ps/0", "ps/1"}
    names = {span["name"] for _, span in of_ps}
    assert {"take gradient", "apply", "wait for the answer", "reply"} <= names, names
    for resource, span in of_ps:
        parent_resource, parent = spans[span["parentSpanId"]]
        chain = [parent]
        while "parentSpanId" in chain[-1]:
            chain.append(spans[chain[-1]["parentSpanId"]][1])
        if parent_resource["service.name"] == "workerd":
            assert parent["name"] == "push, wait, receive" and span["kind"] == 2, (parent, span)
        assert chain[-1]["name"] == "step", chain
        assert all(each["traceId"] == span["traceId"] for each in chain), (span, chain)
        # Its own clock is the same here, and a request is sent before it is taken.
        assert int(span["startTimeUnixNano"]) >= int(chain[-1]["startTimeUnixNano"]) - 5_000_000, (span, chain)
    print(f"{mode}: {len(roots)} steps, {len(taken)} spans, {len(of_ps)} of them of the ps")


def metric(address, name):
    try:
        text = urllib.request.urlopen(f"http://{address}/metrics", timeout=5).read().decode()
    except OSError:  # it is busy: asked again
        return {}
    return {match[1]: float(match[2])
            for match in re.finditer(rf'^{name}{{.*outcome="(\w+)".*}} (\S+)$', text, re.MULTILINE)}


def check_silent_collector(build):
    """Each request would take two seconds: if a step waited for one, the job would take minutes."""
    silent = socket.socket()
    silent.bind(("127.0.0.1", 0))
    silent.listen(64)
    with tempfile.TemporaryDirectory() as folder:
        job, cluster = launch(build, folder, silent.getsockname()[1], "sync", 100_000_000, 1)
        try:
            end = time.monotonic() + PATIENCE
            while True:
                assert job.poll() is None, job.communicate()
                assert time.monotonic() < end, "waited in vain for spans that were dropped"
                said = subprocess.run([build / "launcher/dtf-launch", "status", cluster, "--json"], capture_output=True,
                                      text=True).stdout
                status = json.loads(said or "{}")
                workers = [(task["answer"] or {}).get("metrics") for task in status.get("tasks", [])]
                dropped = [metric(each, "dtf_trace_spans_total") for each in workers if each]
                if len(dropped) == 4 and all(each.get("dropped", 0) > 5000 for each in dropped):
                    break
                time.sleep(0.2)
            assert all(each["sent"] == 0 for each in dropped), dropped
            print(f"a collector that never answers: {dropped}")
        finally:
            job.terminate()
            begin = time.monotonic()
            job.communicate(timeout=PATIENCE)
        assert time.monotonic() - begin < 30, "the end waited for the collector"
    with tempfile.TemporaryDirectory() as folder:
        steps = 3000
        begin = time.monotonic()
        job, _ = launch(build, folder, silent.getsockname()[1], "sync", steps, 1)
        _, said = job.communicate(timeout=PATIENCE)
        assert job.returncode == 0, said
        print(f"{steps} steps, each traced, at a collector that never answers: {time.monotonic() - begin:.1f} s")


def main():
    build = pathlib.Path(sys.argv[1])
    check_traces("sync", build)
    check_traces("async", build)
    check_silent_collector(build)


if __name__ == "__main__":
    main()
