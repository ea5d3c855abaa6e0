#!/usr/bin/env python3
"""`launch: {via: systemd}` on several hosts: dtf-launch on one of them writes, starts, follows and
stops units on all, by ssh.

Usage: far_units_test.py BUILD_FOLDER [CASE...]
Exit code 77: this machine can't have such hosts; the last line gives the reason.
"""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

import host as hosts
import three_hosts
from three_hosts import DISK, LONG, SOON, SSH_PORTS

ENDLESS = 100_000_000
ANSWER_SECONDS = 20  # ssh itself waits for 10
PLACES = {"ps/0": "one", "ps/1": "two", "worker/0": "one", "worker/1": "two"}
FAR_CHIEF = {"ps/0": "two", "ps/1": "three", "worker/0": "two", "worker/1": "three"}
JOB = """
job: {name}
run_dir: /mnt/runs/{name}
cluster:
  ps: [{ps}]
  worker: [{worker}]
keys: keys
launch: {{via: systemd, user: {user}, port: 2200, identity: id, ssh_config: ssh_config, hosts: [{hosts}]{more}}}
timeouts: {{lease_seconds: 4, stop_seconds: 5}}
train:
  model:
    input: {{shape: [28, 28, 1]}}
    layers: [flatten: , dense: {{units: 64, activation: relu}}, dense: {{units: 10}}]
    loss: sparse_categorical_crossentropy
  data: {{train: {{format: digits, count: 1000}}, eval: {{format: digits, count: 200}}, batch_size: 250, seed: 7}}
  optimizer: {{adam: {{learning_rate: 0.001}}}}
  replication: {{mode: sync}}
  steps: {steps}
  checkpoint: {{every_steps: 100, gather: true}}
"""
SSH_CONFIG = "Host *\n  IdentitiesOnly yes\n  UserKnownHostsFile /root/known\n  GlobalKnownHostsFile none\n"
ENVIRONMENT = ["/usr/bin/env", "-i", "PATH=/usr/local/bin:/usr/bin:/usr/sbin", "HOME=/root"]


class Bench:
    """Three hosts, a job that dtf-launch on the first has on them, and the questions that the cases ask."""

    def __init__(self, three):
        self.three, self.folder = three, three.folder
        self.one = three.hosts["one"]
        self.name, self.places, self.launch = "", PLACES, None
        root = self.one.root / "root"
        (root / "id").write_text((self.folder / "id").read_text())
        (root / "id").chmod(0o600)
        known = (self.folder / "known").read_text()
        (root / "known").write_text(known + known.replace("[two]", "[10.99.0.2]"))
        (root / "ssh_config").write_text(SSH_CONFIG)

    def job(self, name, steps=ENDLESS, places=None, user="root", more=""):
        self.name, self.places = name, places or PLACES
        address = {task: f"'{place}:{2221 + int(task[-1]) + (10 if task[0] == 'w' else 0)}'" for task, place in self.places.items()}
        three = f"{{host: three, port: {SSH_PORTS['three']}}}" if "three" in self.places.values() else ""
        text = JOB.format(name=name, steps=steps, user=user, more=more, hosts=three,
                          ps=", ".join(address[task] for task in address if task[0] == "p"),
                          worker=", ".join(f"{{address: {address[task]}, threads: 1}}" for task in address if task[0] == "w"))
        (self.one.root / "root/job.yaml").write_text(text)
        self.one.run("rm", "-rf", "/root/keys")
        self.one.run("sh", "-c", "cd /root && dtf-launch keys init keys --cluster job.yaml")

    def dtf(self, *words, check=True, seconds=LONG):
        done = self.one.run("env", "HOME=/root", "dtf-launch", *words, check=False, seconds=seconds)
        assert not check or done.returncode == 0, f"{words}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done

    def start(self, *words):
        self.said = open(self.folder / f"{self.name}.said", "w+")
        self.launch = subprocess.Popen(
            ["nsenter", f"--target={self.one.leader}", "--mount", "--uts", "--ipc", "--net", "--pid", "--", *ENVIRONMENT,
             "dtf-launch", "up", "/root/job.yaml", *words],
            stdin=subprocess.DEVNULL, stdout=self.said, stderr=subprocess.STDOUT)

    def told(self):
        said = self.folder / f"{self.name}.said"
        return said.read_text() if said.exists() else ""

    def until(self, what, asked, seconds=LONG):
        try:
            return self.one.until(what, asked, seconds)
        except TimeoutError as late:
            journals = "\n".join(f"{name}: {host.journal('--lines=20')}" for name, host in self.three.hosts.items() if host.leader)
            raise AssertionError(f"{late}\n{self.told()}\n{journals}") from None

    def until_said(self, text, seconds=LONG):
        self.until(f"'{text}'", lambda: text in self.told(), seconds)

    def signal_launcher(self, number):
        self.one.run("sh", "-c", f"kill -{number} $(pidof dtf-launch)")

    def ended(self, seconds=LONG):
        try:
            code = self.launch.wait(seconds)
        except subprocess.TimeoutExpired as late:
            raise AssertionError(f"dtf-launch goes on after {seconds} s, and has said: {self.told()}") from late
        self.launch = None
        return code, self.told()

    def unit(self, task):
        return f"dtf-{self.name}@{task.replace('/', '-')}.service"

    def show(self, task):
        return self.three.hosts[self.places[task]].show(self.unit(task))

    def step(self):
        said = re.match(r"step (\d+) of", self.show("worker/0").get("StatusText", ""))
        return int(said.group(1)) if said else -1

    def trains_on(self, steps=50):
        begin = self.until("first step", lambda: self.step() + 1) - 1
        self.until(f"{steps} steps more", lambda: self.step() >= begin + steps or 0 <= self.step() < begin)

    def run_dir(self, host="one"):
        return self.three.disk(host) / "runs" / self.name

    def summary(self):
        return json.loads((self.run_dir() / "summary.json").read_text())

    def expect_nothing_left(self):
        for name, host in self.three.hosts.items():
            files = host.run("sh", "-c", f"ls /run/systemd/system | grep 'dtf-{self.name}@'; ls -d /run/dtf-units/*", check=False).stdout
            units = host.systemctl("list-units", "--all", "--no-legend", "--plain", f"dtf-{self.name}@*").stdout
            assert not files.strip() and not units.strip(), (name, files, units)
            left = host.run("pgrep", "-l", "psd|workerd", check=False).stdout
            assert not left.strip(), (name, left)

    def after(self):
        if self.launch is not None and self.launch.poll() is None:
            self.launch.kill()
        self.launch = None
        self.three.mend()
        for host in self.three.hosts.values():
            host.run("pkill", "-KILL", "dtf-launch|dtf-agent", check=False)
            host.systemctl("kill", "--signal=KILL", "dtf-*@*", check=False)
            host.systemctl("stop", "dtf-*@*", check=False)
            host.run("sh", "-c", "rm -rf /run/systemd/system/dtf-*@* /run/dtf-units")
            host.systemctl("daemon-reload")
            host.systemctl("reset-failed", check=False)
        self.three.forget_runs()


def a_job_trains_on_two_hosts_and_leaves_no_units(bench):
    bench.job("both", steps=300)
    done = bench.dtf("up", "/root/job.yaml")
    assert "both: done" in done.stdout, done
    summary = bench.summary()
    assert summary["outcome"] == "done" and summary["exit_code"] == 0 and summary["global_step"] == 300, summary
    assert [(task["name"], task["exit_code"], task["restarts"]) for task in summary["tasks"]] \
        == [(name, 0, 0) for name in PLACES], summary
    logs = bench.dtf("logs", "/root/job.yaml").stdout
    for task in PLACES:
        assert re.search(rf"(?m)^{task} +\|.* event=listening", logs), f"{task}\n{logs}"
    bench.expect_nothing_left()


def a_task_that_is_killed_on_another_host_is_started_again_there(bench):
    bench.job("killed")
    bench.start()
    bench.until_said("all 4 units are ready")
    bench.trains_on()
    for task in ("worker/1", "ps/1"):
        before = int(bench.show(task)["NRestarts"])
        bench.three.hosts["two"].run("kill", "-KILL", bench.show(task)["MainPID"])
        bench.until(f"next process of {task}", lambda task=task, before=before:
                    (shown := bench.show(task))["SubState"] == "running" and int(shown["NRestarts"]) == before + 1)
        bench.trains_on()
    assert "killed: running" in bench.dtf("status", "/root/job.yaml").stdout
    bench.until_said("systemd has started ps/1 again (1)")
    stopped = bench.dtf("stop", "/root/job.yaml")
    assert re.search(r"killed: stopped at step \d+, saved", stopped.stdout), stopped
    code, said = bench.ended()
    assert code == 0 and "killed: stopped" in said, (code, said)
    assert {task["name"]: task["restarts"] for task in bench.summary()["tasks"]} \
        == {"ps/0": 0, "ps/1": 1, "worker/0": 0, "worker/1": 1}, bench.summary()
    bench.expect_nothing_left()


def a_job_of_other_hosts_alone_outlives_its_launcher(bench):
    bench.job("far", places=FAR_CHIEF)
    detached = bench.dtf("up", "-d", "/root/job.yaml")
    assert "dtf-launch attach" in detached.stdout, detached
    assert bench.one.run("pgrep", "ssh$", check=False).returncode != 0, "a connection is left"
    bench.trains_on()
    status = bench.dtf("status", "/root/job.yaml").stdout
    assert "far: running, as systemd units" in status and re.search(r"worker/1 +step \d+", status), status
    assert "event=listening" in bench.dtf("logs", "/root/job.yaml", "worker/1").stdout
    again = bench.dtf("up", "/root/job.yaml", check=False)
    assert again.returncode == 69 and "runs already" in again.stderr and "two: " in again.stderr, again
    other = bench.dtf("stop", "/root/job.yaml", "--run-dir", "/mnt/runs/other", check=False)
    assert other.returncode == 69 and "another run: " in other.stderr, other
    attached = subprocess.Popen(
        ["nsenter", f"--target={bench.one.leader}", "--mount", "--uts", "--ipc", "--net", "--pid", "--", *ENVIRONMENT,
         "dtf-launch", "attach", "/root/job.yaml"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True)
    bench.trains_on()
    stopped = bench.dtf("stop", "/root/job.yaml")
    assert re.search(r"far: stopped at step \d+, saved", stopped.stdout), stopped
    shown, _ = attached.communicate(timeout=SOON)
    assert attached.returncode == 0 and "far: stopped" in shown, shown
    bench.expect_nothing_left()
    assert bench.dtf("status", "/root/job.yaml", check=False).returncode == 3
    # The same command continues from the far chief's checkpoint, and a launcher that is killed ends
    # no task.
    first = bench.summary()["global_step"]
    bench.start()
    bench.until_said("all 4 units are ready")
    bench.signal_launcher(signal.SIGKILL)
    bench.launch.wait(SOON)
    bench.trains_on()
    bench.dtf("stop", "/root/job.yaml")
    assert bench.summary()["global_step"] > first, (first, bench.summary())
    bench.expect_nothing_left()


def a_host_may_have_two_names(bench):
    bench.job("names", steps=100, places={"ps/0": "two", "ps/1": "10.99.0.2", "worker/0": "two", "worker/1": "10.99.0.2"})
    done = bench.dtf("up", "/root/job.yaml")
    assert "names: done" in done.stdout, done
    bench.expect_nothing_left()


def a_host_that_is_cut_off_and_comes_back_is_followed_again(bench):
    bench.job("cut", places={"ps/0": "one", "ps/1": "one", "worker/0": "one", "worker/1": "two"})
    bench.start()
    bench.until_said("all 4 units are ready")
    bench.trains_on()
    bench.three.cable("two", "down")
    bench.until_said("systemd does not report the state of the units")
    bench.three.cable("two", "up")
    bench.until_said("systemd answers again")
    bench.dtf("keys", "renew", "/root/keys")
    bench.until_said("the renewed keys of its tasks were sent to two")
    bench.trains_on()
    bench.signal_launcher(signal.SIGINT)
    code, said = bench.ended()
    assert code == 130 and "cut: stopped" in said, (code, said)
    bench.expect_nothing_left()


def a_host_that_is_started_anew_ends_the_job(bench):
    bench.job("anew", places={"ps/0": "one", "ps/1": "one", "worker/0": "one", "worker/1": "two"})
    bench.start()
    bench.until_said("all 4 units are ready")
    bench.trains_on()
    bench.three.kill("two")
    bench.three.hosts["two"].boot()
    code, said = bench.ended()
    assert code == 69 and "worker/1 is gone with its unit" in said, (code, said)
    assert bench.summary()["outcome"] == "failed", bench.summary()
    bench.expect_nothing_left()


def stop_ends_what_it_reaches_and_says_what_it_does_not(bench):
    bench.job("partly", places={"ps/0": "one", "ps/1": "one", "worker/0": "one", "worker/1": "two"})
    bench.dtf("up", "-d", "/root/job.yaml")
    bench.trains_on()
    bench.three.cable("two", "down")
    stopped = bench.dtf("stop", "/root/job.yaml", check=False)
    assert stopped.returncode == 69 and "two: it can't be reached" in stopped.stderr and "may run on" in stopped.stderr, stopped
    assert bench.show("worker/0").get("ActiveState") == "inactive", bench.show("worker/0")
    bench.three.cable("two", "up")
    bench.until("the rest to stop", lambda: bench.dtf("stop", "/root/job.yaml", check=False).returncode in (0, 3))
    bench.expect_nothing_left()


def expect_refused(bench, code, *words):
    begin = time.monotonic()
    done = bench.dtf("up", "/root/job.yaml", check=False)
    took = time.monotonic() - begin
    assert done.returncode == code and all(word in done.stderr for word in words), done
    assert took < ANSWER_SECONDS, f"{took:.1f} s: {done}"
    bench.expect_nothing_left()


def what_can_not_run_on_another_host_is_said_within_seconds(bench):
    two = bench.three.hosts["two"]
    # A host that isn't there, and one that is cut off.
    bench.job("mistaken")
    file = bench.one.root / "root/job.yaml"
    text = file.read_text()
    bench.three.cable("two", "down")
    expect_refused(bench, 69, "two: it can't be reached")
    bench.three.cable("two", "up")
    # The remote systemd does not run for this user.
    bench.job("mistaken", user="alice")
    expect_refused(bench, 69, "two: the systemd of the user alice does not answer", "loginctl enable-linger alice")
    # Another version of dtf, and none.
    other = bench.three.hosts["two"].root / "root/other"
    other.mkdir()
    (other / "dtf-agent").write_text("#!/bin/sh\necho dtf-agent 4 0.0.1\n")
    (other / "dtf-agent").chmod(0o755)
    bench.job("mistaken", more=", binary_dir: /root/other")
    expect_refused(bench, 78, "two: it has dtf 0.0.1", "install one version on all hosts")
    bench.job("mistaken", more=", binary_dir: /root/none")
    expect_refused(bench, 78, "two: there is no dtf-agent in launch.binary_dir, /root/none")
    # A port of that host is taken.
    file.write_text(text)
    bench.one.run("sh", "-c", "cd /root && rm -rf keys && dtf-launch keys init keys --cluster job.yaml")
    holder = subprocess.Popen(
        ["nsenter", f"--target={two.leader}", "--mount", "--net", "--pid", "--", "/usr/bin/python3", "-c",
         "import socket,sys; s=socket.create_server(('10.99.0.2',2222)); print('held',flush=True); sys.stdin.read()"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert holder.stdout.readline() == "held\n"
    # A unit of another job may run there: its file stays.
    there = "/run/dtf-units/dtf-mistaken@ps-1.service"
    two.run("mkdir", "-p", there)
    refused = bench.dtf("up", "/root/job.yaml", check=False)
    assert refused.returncode == 69 and "2222" in refused.stderr, refused
    two.run("rmdir", there)
    expect_refused(bench, 69, "two: ", "2222")
    holder.communicate("")
    # A systemd that isn't process 1.
    two.run("mv", "/run/systemd/system", "/run/systemd/elsewhere")
    try:
        done = bench.dtf("up", "/root/job.yaml", check=False)
    finally:
        two.run("mv", "/run/systemd/elsewhere", "/run/systemd/system")
    assert done.returncode == 69 and "two: systemd is not process 1 of this host" in done.stderr, done
    bench.expect_nothing_left()


def a_dry_run_prints_the_units_of_each_host(bench):
    bench.job("planned", steps=10)
    said = bench.dtf("up", "--dry-run", "/root/job.yaml").stdout
    assert "# /run/systemd/system/dtf-planned@worker-0.service\n" in said, said
    assert "# two:/run/systemd/system/dtf-planned@worker-1.service\n" in said, said
    assert "# on two, over ssh:\nsystemctl daemon-reload\nsystemctl start --no-block dtf-planned@ps-1.service" in said, said
    told = json.loads(bench.dtf("up", "--dry-run", "--json", "/root/job.yaml").stdout)
    assert {unit.get("host", "") for unit in told["units"]} == {"", "two"} and list(told["commands_there"]) == ["two"], told
    bench.expect_nothing_left()


CASES = [a_job_trains_on_two_hosts_and_leaves_no_units, a_task_that_is_killed_on_another_host_is_started_again_there,
         a_job_of_other_hosts_alone_outlives_its_launcher, a_host_may_have_two_names, a_host_that_is_cut_off_and_comes_back_is_followed_again,
         a_host_that_is_started_anew_ends_the_job, stop_ends_what_it_reaches_and_says_what_it_does_not,
         what_can_not_run_on_another_host_is_said_within_seconds, a_dry_run_prints_the_units_of_each_host]


def run_cases(build, wanted, folder):
    """Runs the cases; returns how many failed."""
    three = three_hosts.Hosts(build, folder, with_slurm=False)
    try:
        bench = Bench(three)
        return hosts.run_cases("FarUnits", CASES, wanted, bench, bench.after)
    finally:
        three.close()


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    if os.geteuid() != 0:
        print("SKIPPED: only root boots hosts with systemd-nspawn")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        try:
            hosts.in_own_network()
            return 1 if run_cases(build, sys.argv[2:], pathlib.Path(folder)) else 0
        except hosts.NoHost as reason:
            print(f"SKIPPED: no hosts with systemd can be booted here: {reason}")
            return 77


if __name__ == "__main__":
    sys.exit(main())
