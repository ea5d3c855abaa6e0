#!/usr/bin/env python3
"""The bytes that each host of a sync job sends in a step, as the kernel counts them on its link:
2 (N-1) / N of the model on N hosts, whether the workers host the parameters or a ps beside each of
them does. A replica adds 1/N: the mean gradient of a share, which also goes to the next host. Of
several workers on each host, sums by host leave a quarter of the bytes to four of them.

Usage: traffic_test.py BUILD_FOLDER [CASE...]     prints a table; exit code 77: this machine can't
                                                  have such hosts; the last line gives the reason
"""
import json
import subprocess
import sys

import host as hosts
import linked

# What start and end of a job send is in both runs, so their difference has steps only.
FEW, MANY = 4, 16
SECONDS = 120  # of one run
HEADERS = 1.05
JOB = """
job: traffic
run_dir: {run_dir}
insecure: true
cluster: {cluster}
durability: {durability}
train:
  model:
    input: {{shape: [28, 28, 1]}}
    layers: [flatten: , dense: {{units: 800, activation: relu}}, dense: {{units: 600, activation: relu}}, dense: {{units: 10}}]
    loss: sparse_categorical_crossentropy
  data: {{train: {{format: digits, count: 600}}, batch_size: 10, seed: 7}}
  optimizer: {optimizer}
  replication: {{mode: sync}}
  steps: {steps}
  checkpoint: none
"""
# Four workers on each of two hosts behind 400 Mbit/s, and a model with long exchanges: with eight
# workers on two cores a step computes 0.2 s, and sends 0.6 s or 2.4 s.
GROUPED = """
job: grouped
run_dir: {run_dir}
insecure: true
cluster: {{worker: [{workers}]}}
durability: checkpoint
train:
  model:
    input: {{shape: [28, 28, 1]}}
    layers: [flatten: , dense: {{units: 4096, activation: relu}}, dense: {{units: 1024, activation: relu}}, dense: {{units: 10}}]
    loss: sparse_categorical_crossentropy
  data: {{train: {{format: digits, count: 200}}, batch_size: 2, seed: 7}}
  optimizer: {{gradient_descent: {{learning_rate: 0.01}}}}
  replication: {{mode: sync, topology: {{hosts: {hosts}}}}}
  steps: {steps}
  checkpoint: none
"""
RATE = 50e6      # bytes a second
FASTER = 2.5     # with sums, of the steps a second without
SGD = "{gradient_descent: {learning_rate: 0.01}}"
MOMENTUM = "{momentum: {learning_rate: 0.01, momentum: 0.9}}"


class Bench:
    """The hosts of the largest job, and a folder. Borrows both."""

    def __init__(self, build, folder, links):
        self.build, self.folder, self.links = build, folder, links
        self.runs = 0

    def file(self, count, with_ps, durability, optimizer, steps):
        self.runs += 1
        folder = self.folder / str(self.runs)
        folder.mkdir()
        addresses = [link.address for link in self.links[:count]]
        workers = ", ".join(f"{{address: '{each}:2222', threads: 1}}" for each in addresses)
        ps = ", ".join(f"'{each}:2221'" for each in addresses)
        cluster = f"{{{f'ps: [{ps}], ' if with_ps else ''}worker: [{workers}]}}"
        file = folder / "job.yaml"
        file.write_text(JOB.format(run_dir=folder / "run", cluster=cluster, durability=durability,
                                   optimizer=optimizer, steps=steps))
        return file

    def parameters(self, file):
        told = subprocess.run([self.build / "launcher/dtf-launch", "explain", file, "--json"], capture_output=True,
                              text=True, check=True, timeout=SECONDS).stdout
        return next(event["parameters"] for event in map(json.loads, told.splitlines()) if event["event"] == "explain")

    def sent(self, count, with_ps, *job):
        """Bytes that each host has sent in a run."""
        file = self.file(count, with_ps, *job)
        before = [link.sent() for link in self.links[:count]]
        with linked.Tasks(self.build, file.parent) as tasks:
            for index, link in enumerate(self.links[:count]):
                if with_ps:
                    tasks.start(link, "ps", index, file)
                tasks.start(link, "worker", index, file)
            tasks.wait(SECONDS)
        return file, [link.sent() - old for link, old in zip(self.links, before)]

    def measure(self, count, with_ps, durability, optimizer, allowed):
        """`allowed`: parts of the model that a host may send in a step, without headers."""
        _, few = self.sent(count, with_ps, durability, optimizer, FEW)
        file, many = self.sent(count, with_ps, durability, optimizer, MANY)
        model = 4 * self.parameters(file)
        shares = [(last - first) / (MANY - FEW) / model for first, last in zip(few, many)]
        print(f"| {count} | {'a ps beside each worker' if with_ps else 'workers alone'} | {durability} | "
              f"{optimizer.strip('{').split(':')[0]} | {allowed:.3f} | {min(shares):.3f} to {max(shares):.3f} |", flush=True)
        assert max(shares) <= HEADERS * allowed, f"a host sends {max(shares):.3f} of the model in a step, not {allowed:.3f}: {shares}"


    def grouped(self, how, steps):
        """Runs four workers on each of two hosts; returns the file, the bytes that each host has sent, and steps a second."""
        self.runs += 1
        folder = self.folder / str(self.runs)
        folder.mkdir()
        pair = self.links[:2]
        places = [(link, port) for link in pair for port in range(2222, 2226)]
        workers = ", ".join(f"{{address: '{link.address}:{port}', threads: 1}}" for link, port in places)
        file = folder / "job.yaml"
        file.write_text(GROUPED.format(run_dir=folder / "run", workers=workers, hosts=how, steps=steps))
        before = [link.sent() for link in pair]
        with linked.Tasks(self.build, folder) as tasks:
            for index, (link, _) in enumerate(places):
                tasks.start(link, "worker", index, file)
            tasks.wait(SECONDS)
        rate = json.loads((folder / "run/summary.json").read_text())["steps_per_second"]
        return file, [link.sent() - old for link, old in zip(pair, before)], rate

    def compare_sums(self):
        for link in self.links[:2]:
            link.limit(RATE)
        shares, rates = {}, {}
        for how in ("apart", "sum"):
            _, few, _ = self.grouped(how, FEW)
            file, many, rates[how] = self.grouped(how, MANY)
            model = 4 * self.parameters(file)
            shares[how] = max((last - first) / (MANY - FEW) / model for first, last in zip(few, many))
            print(f"| 2 of 4 workers | hosts: {how} | checkpoint | gradient_descent | {1 if how == 'sum' else 4}.000 | {shares[how]:.3f}; "
                  f"{rates[how]:.2f} steps/s at 400 Mbit/s |", flush=True)
        assert shares["sum"] <= HEADERS * shares["apart"] / 4, shares
        assert rates["sum"] >= FASTER * rates["apart"], rates


def ring(count):
    return 2 * (count - 1) / count


def cases():
    for count in (2, 4, 8):
        for with_ps in (False, True):
            def case(bench, count=count, with_ps=with_ps):
                bench.measure(count, with_ps, "checkpoint", SGD, ring(count))
            case.__name__ = f"{'ps_beside' if with_ps else 'without_ps'}_{count}"
            yield case

    def replica(bench):
        bench.measure(4, False, "replica", MOMENTUM, ring(4) + 1 / 4)
    yield replica

    def sums_by_host(bench):
        bench.compare_sums()
    yield sums_by_host


def run(build, wanted, folder):
    print("| hosts | job | durability | optimizer | allowed | sent a host and step, of the model |\n|---|---|---|---|---|---|", flush=True)
    with linked.Links(8) as links:
        return hosts.run_cases("Traffic", list(cases()), wanted, Bench(build, folder, links), lambda: None)


if __name__ == "__main__":
    sys.exit(linked.main(run))
