#!/usr/bin/env python3
"""`placement: auto` on four hosts, of which one has a tenth of the others' bandwidth: the choice,
the step time beside that of equal shares, and the exchange predicted and measured.

Usage: auto_placement_test.py BUILD_FOLDER [CASE...]     prints a table; exit code 77: this machine
                                                         can't have such hosts; the last line gives
                                                         the reason

dtf-launch runs on the first host. In place of ssh it finds a program that runs the agent in the
network of the host; a real sshd is in tests/e2e/network_test.cc.
"""
import json
import os
import pathlib
import subprocess
import sys

import host as hosts
import linked

FAST, SLOW = 6e6, 0.6e6  # bytes a second; two busy cores can do more for all together
SECONDS = 180
STEPS = 32
NEAR = 0.2  # predicted and measured
JOB = """
job: auto
run_dir: {run_dir}
insecure: true
cluster: {cluster}
launch: {{via: ssh, binary_dir: {bin}}}
durability: checkpoint
train:
  model:
    input: {{shape: [28, 28, 1]}}
    layers: [flatten: , dense: {{units: 60, activation: relu}}, dense: {{units: 10}}]
    loss: sparse_categorical_crossentropy
  data: {{train: {{format: digits, count: 600}}, batch_size: 10, seed: 7}}
  optimizer: {{gradient_descent: {{learning_rate: 0.01}}}}
  replication: {{mode: sync}}
  placement: {placement}
  steps: {steps}
  report: {{every_steps: 5}}
  checkpoint: none
"""
SSH = """#!/bin/sh
# ssh [OPTION...] -- HOST COMMAND, in the network of that host.
while [ "$1" != -- ]; do shift; done
read -r pid <"{folder}/networks/$2"
shift 2
exec nsenter --target="$pid" --net -- "$@"
"""


class Bench:
    """Four hosts, the last behind a slow link. Borrows the hosts."""

    def __init__(self, build, folder, links):
        self.folder, self.links = folder, links
        self.bin = folder / "bin"
        self.runs = 0
        self.bin.mkdir()
        for program in ("daemons/psd/psd", "daemons/workerd/workerd", "launcher/dtf-launch", "launcher/dtf-agent"):
            (self.bin / pathlib.Path(program).name).symlink_to(build / program)
        (self.bin / "ssh").write_text(SSH.format(folder=folder))
        (self.bin / "ssh").chmod(0o755)
        (folder / "networks").mkdir()
        for link in links:
            (folder / "networks" / link.address).write_text(f"{link.keeper.pid}\n")
            link.limit(FAST)
        links[3].limit(SLOW)

    def cluster(self, ps, workers):
        """`ps`, `workers`: the hosts of each."""
        words = [f"worker: [{', '.join(f'{{address: {q(self.links[each].address, 2222)}, threads: 1}}' for each in workers)}]"]
        if ps:
            words.insert(0, f"ps: [{', '.join(q(self.links[each].address, 2221) for each in ps)}]")
        return f"{{{', '.join(words)}}}"

    def file(self, cluster, placement, steps=STEPS):
        self.runs += 1
        file = self.folder / f"job{self.runs}.yaml"
        file.write_text(JOB.format(run_dir=self.folder / f"run{self.runs}", cluster=cluster, bin=self.bin,
                                   placement=placement, steps=steps))
        return file

    def launch(self, *words):
        """Returns the events."""
        process = self.links[0].start(self.bin / "dtf-launch", *words, "--json", stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                      env=os.environ | {"PATH": f"{self.bin}:{os.environ['PATH']}"})
        try:
            out, told = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            out, told = process.communicate()
        assert process.returncode == 0, f"{words}: {process.returncode}\n{told[-4000:]}"
        return [json.loads(line) for line in out.splitlines()], told

    def step_ms(self, events):
        """The time of a step between the progress of step 5 and the last one."""
        return 1e3 / last(events, "summary")["steps_per_second"]


def q(address, port):
    return f"'{address}:{port}'"


def last(events, name):
    found = [event for event in events if event["event"] == name]
    assert found, f"no event {name}: {events}"
    return found[-1]


def compared(bench, words, ps, workers, placement, explicit):
    """Runs the job with equal shares and with `placement`, and prints a row."""
    cluster = bench.cluster(ps, workers)
    even, _ = bench.launch(bench.file(cluster, explicit))
    file = bench.file(cluster, placement)
    auto, told = bench.launch(file)
    choice = last(auto, "placement")
    exchange = last(auto, "exchange")
    option = next(each for each in choice["options"] if each["name"] == choice["chosen"])
    shares = ", ".join(f"{each:.3f}" for each in option["shares"]) or "equal"
    print(f"| {words} | {bench.step_ms(even):.0f} ms | {choice['chosen']}: {shares} | {bench.step_ms(auto):.0f} ms | "
          f"{exchange['predicted_ms']:.0f} ms | {exchange['measured_ms']:.0f} ms |", flush=True)
    assert "event=" not in told or "error" not in told, told
    return bench.step_ms(even), bench.step_ms(auto), exchange, file, last(even, "summary"), last(auto, "summary")


def near(exchange):
    ratio = exchange["measured_ms"] / exchange["predicted_ms"]
    assert 1 - NEAR <= ratio <= 1 + NEAR, exchange


def a_slow_ps_gets_its_share(bench):
    even, auto, exchange, _, before, after = compared(bench, "2 workers, 2 ps, a slow ps", (2, 3), (0, 1),
                                                      "{strategy: auto, among: [ps]}", "{strategy: even}")
    assert auto < even / 2, "a slow ps still sets the pace"
    near(exchange)
    assert before["parameters_digest"] == after["parameters_digest"]


def ps_that_move_more_bytes_are_left_out(bench):
    even, auto, exchange, file, before, after = compared(bench, "2 workers, 2 ps, a slow ps, all to choose from", (2, 3), (0, 1), "auto",
                                                         "{strategy: even}")
    assert auto < even / 2
    near(exchange)
    assert before["parameters_digest"] == after["parameters_digest"]
    # A resumed run keeps the choice, whatever the links are then.
    kept = json.loads((file.parent / f"run{bench.runs}" / "placement.json").read_text())
    again, told = bench.launch(file, "--set", f"train.steps={STEPS}")
    assert not [event for event in again if event["event"] == "placement"], again
    assert kept["placement"]["text"] in told, told


def a_slow_worker_keeps_its_share(bench):
    even, auto, exchange, _, before, after = compared(bench, "4 workers, a slow one", (), (0, 1, 2, 3), "auto", "{strategy: even}")
    assert auto < 1.2 * even
    near(exchange)
    assert before["parameters_digest"] == after["parameters_digest"]


def explain_measures_and_starts_nothing(bench):
    file = bench.file(bench.cluster((2, 3), (0, 1)), "auto")
    events, _ = bench.launch("explain", file, "--measure")
    choice = last(events, "placement")
    for link in choice["links"]:
        rate = SLOW if link["host"] == bench.links[3].address else FAST
        for way in ("out", "in"):
            assert 0.7 < link[f"{way}_bytes_per_second"] / rate < 1.3, (link, rate)
    assert not (file.parent / f"run{bench.runs}").exists(), "nothing of the job is touched"


CASES = [a_slow_ps_gets_its_share, ps_that_move_more_bytes_are_left_out, a_slow_worker_keeps_its_share, explain_measures_and_starts_nothing]


def run(build, wanted, folder):
    print("| hosts | a step with equal shares | auto chooses | a step | an exchange, predicted | measured |\n|---|---|---|---|---|---|", flush=True)
    with linked.Links(4) as links:
        return hosts.run_cases("AutoPlacement", CASES, wanted, Bench(build, folder, links), lambda: None)


if __name__ == "__main__":
    sys.exit(linked.main(run))
