#!/usr/bin/env python3
"""Jobs on a real Slurm of two nodes, submitted by dtf-launch: trained, killed, cancelled and
requeued there.

Usage: slurm_test.py BUILD_FOLDER [CASE...]
Exit code 77: this machine can't have such hosts; the last line gives the reason.

A disturbed job is compared with an undisturbed one of as many steps, on this machine.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

import host as hosts
import slurm

ENDLESS = 100_000_000
SOON, LONG = 30, 90  # seconds
JOB = """
job: {name}
run_dir: {run_dir}
cluster: {cluster}
insecure: true
launch: {launch}
timeouts: {{stop_seconds: 10}}
train:
  model:
    input: {{shape: [28, 28, 1]}}
    layers: [flatten: , dense: {{units: 64, activation: relu}}, dense: {{units: 10}}]
    loss: sparse_categorical_crossentropy
  data: {{train: {{format: digits, count: 1000}}, batch_size: 250, seed: 7}}
  optimizer: {{adam: {{learning_rate: 0.001}}}}
  replication: {{mode: sync}}
  steps: {steps}
  checkpoint: {checkpoint}
"""
SPARE = "{{via: slurm, nodes: 2, time: 10, requeue: true, sbatch: [--exclusive, --partition={partition}]}}"
COUNTED = "{ps: {count: 2}, worker: {count: 2, threads: 1}}"


class Bench:
    """A Slurm, and the queries of the cases."""

    def __init__(self, build, cluster, folder):
        self.build, self.cluster, self.folder = build, cluster, folder
        self.name, self.number = "", ""

    def write(self, name, steps=ENDLESS, checkpoint="{every_steps: 100}", more="", **other):
        self.name = name
        values = {"name": name, "run_dir": f"/shared/runs/{name}", "steps": steps, "checkpoint": checkpoint,
                  "cluster": COUNTED, "launch": "{via: slurm, nodes: 2, time: 10, sbatch: [--exclusive]" + more + "}"} | other
        (self.cluster.shared / f"{name}.yaml").write_text(JOB.format(**values))
        return values

    def submit(self):
        said = self.cluster.run("dtf-launch", "submit", f"{self.name}.yaml", "--json").stdout
        self.number = json.loads(said)["slurm_job"]
        self.until("start of the job", lambda: self.state() != "PENDING", LONG)

    def state(self):
        return self.cluster.job(self.number)["JobState"]

    def until(self, what, asked, seconds=SOON):
        try:
            return self.cluster.nodes[0].until(what, asked, seconds)
        except TimeoutError as late:
            raise AssertionError(f"{late}\n{self.seen()}") from None

    def seen(self):
        return (f"{[node.run('ss', '-ltnp').stdout for node in self.cluster.nodes]}\n"
                f"{[node.run('ps', 'axo', 'pid,ppid,pgid,args').stdout for node in self.cluster.nodes]}\n"
                f"{self.cluster.run('scontrol', 'show', 'job', self.number, check=False).stdout}\n"
                f"{self.cluster.told(self.number)}\n{self.cluster.logs()}")

    def expect_end(self, state):
        self.until("end of the job", lambda: self.state() not in ("RUNNING", "COMPLETING", "PENDING"), LONG)
        assert self.state() == state, f"{self.state()}, not {state}\n{self.seen()}"

    def step(self):
        file = self.cluster.shared / "runs" / self.name / "status.json"
        try:
            step = json.loads(file.read_text())["step"]
            return -1 if step is None else step
        except (FileNotFoundError, json.JSONDecodeError):
            return -1

    def trains_on(self, steps=100):
        self.until("first step", lambda: self.step() >= 0, LONG)
        low = [self.step()]

        def passed():
            now = self.step()
            low[0] = min(low[0], now) if now >= 0 else low[0]
            return now >= low[0] + steps
        self.until(f"{steps} steps more", passed, LONG)

    def summary(self):
        return json.loads((self.cluster.shared / "runs" / self.name / "summary.json").read_text())

    def expect_same_bits(self, values):
        """Expects the bits of the same job undisturbed."""
        steps = self.summary()["global_step"]
        file = self.folder / "calm.yaml"
        file.write_text(JOB.format(**values | {"launch": "{via: local}", "run_dir": self.folder / f"calm-{self.name}",
                                               "steps": steps, "checkpoint": "{every_seconds: 3600}"}))
        done = subprocess.run([self.build / "launcher/dtf-launch", "-q", file], capture_output=True, text=True, timeout=300,
                              check=False)
        assert done.returncode == 0, done.stderr
        calm = json.loads((self.folder / f"calm-{self.name}/summary.json").read_text())
        assert self.summary()["parameters_digest"] == calm["parameters_digest"], "not the same bits"

    def kill(self, node, program):
        self.cluster.nodes[node].run("pkill", "-KILL", "-x", program)

    def is_back(self, task, times=1):
        self.until(f"{task} to be back", lambda: self.cluster.told(self.number).count(f"{task} is back") >= times, LONG)

    def expect_nothing_left(self):
        for node in self.cluster.nodes:
            self.until("end of all tasks", lambda node=node: not node.run(
                "pgrep", "-l", "psd|workerd|dtf-agent|dtf-launch|srun", check=False).stdout)

    def take_the_nodes(self):
        """Starts a job of a partition of higher priority; returns its number."""
        said = self.cluster.run("sbatch", "--parsable", "--partition=urgent", "--nodes=2", "--exclusive", "--wrap=sleep 3").stdout
        return said.strip()

    def goes_on_after(self, urgent, first):
        self.until("end of the urgent job", lambda: self.cluster.job(urgent)["JobState"] == "COMPLETED", LONG)
        # Slurm itself waits two minutes.
        self.cluster.nodes[0].run("scontrol", "update", f"JobId={self.number}", "StartTime=now")
        self.until("start of the job", lambda: self.state() == "RUNNING", LONG)
        self.until("more steps", lambda: self.step() > first, LONG)

    def clean(self):
        self.cluster.run("scancel", "--user=alice", check=False)
        self.until("empty queue", lambda: not self.cluster.run("squeue", "--noheader").stdout, LONG)


def a_submitted_job_trains_on_both_nodes(bench):
    values = bench.write("calm", steps=300)
    bench.submit()
    bench.expect_end("COMPLETED")
    assert bench.summary()["outcome"] == "done" and bench.summary()["global_step"] == 300, bench.summary()
    tasks = json.loads((bench.cluster.shared / "runs/calm/launch.json").read_text())["tasks"]
    where = {task["name"]: task["address"].split(":")[0] for task in tasks}
    assert where == {"ps/0": "one", "ps/1": "two", "worker/0": "one", "worker/1": "two"}, where
    bench.expect_same_bits(values)
    bench.expect_nothing_left()


def it_needs_no_shared_disk_for_its_run(bench):
    """But for the cluster file, which the batch script reads; events and all are where dtf-launch runs."""
    bench.write("apart", steps=300, run_dir="/var/tmp/apart", checkpoint="{every_steps: 100, gather: true}")
    bench.submit()
    bench.expect_end("COMPLETED")
    one, two = (node.root / "var/tmp/apart" for node in bench.cluster.nodes)
    assert json.loads((one / "summary.json").read_text())["global_step"] == 300
    assert list((one / "checkpoints").glob("step-*")) and not list(two.glob("checkpoints/step-*"))


def what_is_killed_comes_back(bench):
    values = bench.write("killed")
    bench.submit()
    bench.trains_on(150)  # a checkpoint is there
    bench.kill(1, "workerd")
    bench.is_back("worker/1")
    bench.trains_on()
    bench.kill(1, "psd")
    bench.is_back("ps/1")
    bench.trains_on()
    bench.kill(1, "dtf-agent")
    bench.is_back("worker/1", 2)
    bench.is_back("ps/1", 2)
    bench.trains_on()
    bench.cluster.run("scancel", "--batch", "--signal=TERM", bench.number)
    bench.expect_end("COMPLETED")
    assert bench.summary()["outcome"] == "stopped", bench.summary()
    bench.expect_same_bits(values)
    bench.expect_nothing_left()


def a_cancelled_job_saves_and_goes_on_when_submitted_again(bench):
    """scancel has SIGTERM sent to every process of the job at once: dtf-launch, agents, tasks."""
    values = bench.write("cancelled", checkpoint="{every_seconds: 3600}")
    bench.submit()
    bench.trains_on()
    bench.cluster.run("scancel", bench.number)
    bench.expect_end("CANCELLED")
    assert bench.summary()["outcome"] in ("stopped", "done"), bench.summary()
    first = bench.summary()["global_step"]
    bench.submit()
    bench.trains_on()
    assert re.search(rf"step {first}\b", bench.cluster.told(bench.number)), bench.seen()
    bench.cluster.run("scancel", "--batch", "--signal=TERM", bench.number)
    bench.expect_end("COMPLETED")
    assert bench.summary()["global_step"] > first, bench.summary()
    bench.expect_same_bits(values)


def at_its_limit_a_job_saves_and_waits_for_another_turn(bench):
    values = bench.write("requeued", checkpoint="{every_seconds: 3600}", more=", requeue: true")
    bench.submit()
    bench.trains_on()
    bench.cluster.run("scancel", "--batch", "--signal=USR1", bench.number)  # as Slurm does, --signal=B:USR1@40
    bench.until("another turn", lambda: bench.cluster.job(bench.number)["Restarts"] == "1", LONG)
    first = bench.summary()["global_step"]
    # Slurm itself waits two minutes. It takes a credential of the second in which it has revoked
    # one for that one.
    revoked = time.time()
    bench.until("another second", lambda: time.time() > revoked + 2, LONG)
    bench.cluster.nodes[0].run("scontrol", "update", f"JobId={bench.number}", "StartTime=now")
    bench.until("start of the job", lambda: bench.state() == "RUNNING", LONG)
    bench.until("more steps", lambda: bench.step() > first, LONG)
    bench.cluster.run("scancel", "--batch", "--signal=TERM", bench.number)
    bench.expect_end("COMPLETED")
    assert bench.cluster.job(bench.number)["Restarts"] == "1"
    bench.expect_same_bits(values)


def a_preempted_job_saves_in_its_grace_and_goes_on_when_the_nodes_are_free(bench):
    """Slurm has SIGTERM sent to the tasks alone: not to the batch script, nor to dtf-launch."""
    values = bench.write("preempted", checkpoint="{every_seconds: 3600}", launch=SPARE.format(partition="spare"))
    bench.submit()
    bench.trains_on()
    urgent = bench.take_the_nodes()
    bench.until("another turn", lambda: bench.cluster.job(bench.number)["Restarts"] == "1", LONG)
    saved = bench.summary()
    assert (saved["outcome"], saved["exit_code"]) == ("stopped", 0), saved
    assert saved["checkpoint"]["last_step"] == saved["global_step"] > 0, saved
    bench.goes_on_after(urgent, saved["global_step"])
    bench.cluster.run("scancel", "--batch", "--signal=TERM", bench.number)
    bench.expect_end("COMPLETED")
    assert bench.cluster.job(bench.number)["Restarts"] == "1"
    bench.expect_same_bits(values)
    bench.expect_nothing_left()


def a_preempted_job_without_grace_is_requeued_by_slurm(bench):
    """SIGTERM goes to all processes at once, SIGKILL follows after KillWait; the batch script takes it for scancel's."""
    values = bench.write("hasty", checkpoint="{every_seconds: 3600}", launch=SPARE.format(partition="hasty"))
    bench.submit()
    bench.trains_on()
    urgent = bench.take_the_nodes()
    bench.until("another turn", lambda: bench.cluster.job(bench.number)["Restarts"] == "1", LONG)
    bench.until("end of the tasks", lambda: bench.cluster.job(urgent)["JobState"] != "PENDING", LONG)
    bench.goes_on_after(urgent, bench.summary()["global_step"])
    bench.cluster.run("scancel", "--batch", "--signal=TERM", bench.number)
    bench.expect_end("COMPLETED")
    bench.expect_same_bits(values)


def within_an_allocation_up_is_enough(bench):
    bench.write("within", steps=50)
    done = bench.cluster.run("salloc", "--nodes=2", "--exclusive", "dtf-launch", "within.yaml", seconds=LONG)
    assert "done" in done.stdout, done
    assert bench.summary()["global_step"] == 50


def mistakes_are_answered_in_words(bench):
    bench.write("mistaken", steps=50)
    outside = bench.cluster.run("dtf-launch", "mistaken.yaml", check=False)
    assert outside.returncode == 2 and "dtf-launch submit" in outside.stderr, outside
    bench.write("mistaken", steps=50, more=", binary_dir: /nowhere")
    bench.submit()
    bench.expect_end("FAILED")
    assert bench.cluster.job(bench.number)["ExitCode"] == "78:0", bench.seen()
    assert "there is no /nowhere/dtf-agent" in bench.cluster.told(bench.number), bench.seen()
    bench.write("mistaken", steps=50, cluster="{worker: ['three:auto']}")
    bench.submit()
    bench.expect_end("FAILED")
    assert "'three' is not a node of the allocation: one, two" in bench.cluster.told(bench.number), bench.seen()
    refused = bench.cluster.run("dtf-launch", "submit", "mistaken.yaml", "--set", "launch.sbatch=[--partition=nowhere]", check=False)
    assert refused.returncode == 69 and "it printed: sbatch: error" in refused.stderr, refused


CASES = [a_submitted_job_trains_on_both_nodes, it_needs_no_shared_disk_for_its_run, what_is_killed_comes_back,
         a_cancelled_job_saves_and_goes_on_when_submitted_again, at_its_limit_a_job_saves_and_waits_for_another_turn,
         a_preempted_job_saves_in_its_grace_and_goes_on_when_the_nodes_are_free,
         a_preempted_job_without_grace_is_requeued_by_slurm,
         within_an_allocation_up_is_enough, mistakes_are_answered_in_words]


def run_cases(build, wanted, folder):
    """Runs the cases; returns how many failed."""
    local = folder / "local"
    (local / "bin").mkdir(parents=True)
    for program in ("daemons/psd/psd", "daemons/workerd/workerd", "launcher/dtf-launch", "launcher/dtf-agent"):
        shutil.copy(build / program, local / "bin")
    (folder / "shared").mkdir()
    cluster = slurm.Cluster(local, folder / "shared")
    try:
        bench = Bench(build, cluster, folder)
        return hosts.run_cases("Slurm", CASES, wanted, bench, bench.clean)
    finally:
        cluster.close()


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    if os.geteuid() != 0:
        print("SKIPPED: only root boots hosts with systemd-nspawn")
        return 77
    try:
        hosts.in_own_network()
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            return 1 if run_cases(build, sys.argv[2:], pathlib.Path(folder)) else 0
    except hosts.NoHost as reason:
        print(f"SKIPPED: no Slurm of two hosts can be had here: {reason}")
        return 77


if __name__ == "__main__":
    sys.exit(main())
