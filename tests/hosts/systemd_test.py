#!/usr/bin/env python3
"""The units of configs/systemd on a host with systemd as process 1: two ps and two workers are
started, killed, frozen and stopped there. Real systemd, real processes.

Usage: systemd_test.py BUILD_FOLDER [CASE...]     exit code 77: this machine can't boot a host; the
                                                  last line gives the reason

A disturbed job lasts until it is stopped. It is then compared with an undisturbed one of as many
steps.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import host as hosts

TASKS = ["dtf-psd@0", "dtf-psd@1", "dtf-workerd@0", "dtf-workerd@1"]
CHIEF = "dtf-workerd@0"
ENDLESS = 100_000_000
SOON, LONG = 30, 90  # seconds

# Steps of some milliseconds. The watchdog bites early, so that a test need not wait for half a
# minute.
JOB = """
job: {name}
run_dir: {run_dir}
cluster:
  ps: [{ps}]
  worker: [{worker}]
durability: {durability}
{launch}
train:
  model:
    input: {{shape: [28, 28, 1]}}
    layers: [flatten: , dense: {{units: 64, activation: relu}}, dense: {{units: 10}}]
    loss: sparse_categorical_crossentropy
  data: {{train: {{format: digits, count: 1000}}, batch_size: 250, seed: 7}}
  optimizer: {{adam: {{learning_rate: 0.001}}}}
  replication: {{mode: sync}}
  steps: {steps}
{checkpoint}
"""
DROP_IN = "[Service]\nWatchdogSec=4s\n"


def installed(build, folder):
    """Makes the files that `meson install -Dsystemd=true` puts into /usr/local."""
    places = {"bin": ["daemons/psd/psd", "daemons/workerd/workerd"], "lib/sysusers.d": ["configs/systemd/dtf.conf"],
              "lib/systemd/system": [f"configs/systemd/dtf-{name}" for name in ("psd@.service", "workerd@.service")]
              + ["configs/systemd/dtf.target"]}
    for place, files in places.items():
        (folder / place).mkdir(parents=True)
        for file in files:
            shutil.copy(build / file, folder / place)
    return folder


class Bench:
    """A host, and the queries of the cases."""

    def __init__(self, build, host, folder):
        self.build, self.host, self.folder = build, host, folder
        self.name = ""
        # The steps of configs/systemd/README.md.
        host.run("systemd-sysusers", "dtf.conf")
        (host.root / "etc/dtf").mkdir()
        drop_ins = host.root / "etc/systemd/system/dtf-.service.d"
        drop_ins.mkdir()
        (drop_ins / "test.conf").write_text(DROP_IN)
        host.systemctl("daemon-reload")
        host.systemctl("enable", *TASKS, check=True)

    def job(self, name, steps=ENDLESS, durability="checkpoint", checkpoint="{every_steps: 100}", **other):
        self.name = name
        values = {"name": name, "run_dir": f"runs/{name}", "steps": steps, "durability": durability,
                  "ps": "127.0.0.1:2221, 127.0.0.1:2222", "worker": "127.0.0.1:2223, 127.0.0.1:2224",
                  "launch": "", "checkpoint": f"  checkpoint: {checkpoint or 'none'}"} | other
        (self.host.root / "etc/dtf/cluster.yaml").write_text(JOB.format(**values))
        return values

    def start(self):
        self.host.systemctl("reset-failed", *TASKS, check=False)
        self.host.systemctl("start", "dtf.target")

    def stop(self, units="dtf.target"):
        """systemctl does not wait for the units that a target includes."""
        self.host.systemctl("stop", units)

    def step(self):
        """Returns the chief's step, as `systemctl status` shows it; -1: it has none yet."""
        said = re.match(r"step (\d+) of", self.host.show(CHIEF).get("StatusText", ""))
        return int(said.group(1)) if said else -1

    def until(self, what, asked, seconds=SOON):
        try:
            return self.host.until(what, asked, seconds)
        except TimeoutError as late:
            raise AssertionError(f"{late}\n{self.told()}") from None

    def told(self):
        states = "\n".join(f"{unit}: " + " ".join(f"{key}={self.host.show(unit).get(key)}" for key in
                                                  ("ActiveState", "SubState", "Result", "ExecMainStatus", "NRestarts",
                                                   "StatusText")) for unit in TASKS)
        return states + "\n" + self.host.journal("--lines=60", "--unit=dtf-*")

    def ended(self, units=TASKS):
        return all(self.host.show(unit)["ActiveState"] in ("inactive", "failed") for unit in units)

    def expect(self, unit, **wanted):
        shown = self.host.show(unit)
        seen = {key: shown.get(key) for key in wanted}
        assert seen == {key: str(value) for key, value in wanted.items()}, f"{unit}: {seen}, not {wanted}\n{self.told()}"

    def expect_ended_well(self):
        self.until("end of the job", self.ended, LONG)
        for unit in TASKS:
            self.expect(unit, ActiveState="inactive", Result="success", ExecMainStatus=0, NRestarts=0)

    def summary(self):
        return json.loads((self.host.root / "var/lib/dtf/runs" / self.name / "summary.json").read_text())

    def injure(self, signal, *units):
        """Then waits until systemd has started them again, once each, and they are ready."""
        restarts = {unit: int(self.host.show(unit)["NRestarts"]) for unit in units}
        self.host.systemctl("kill", f"--signal={signal}", *units)

        def is_back(unit):
            shown = self.host.show(unit)
            return shown["SubState"] == "running" and int(shown["NRestarts"]) == restarts[unit] + 1
        for unit in units:
            self.until(f"next process of {unit}", lambda unit=unit: is_back(unit), LONG)

    def trains_on(self, steps=50):
        """The job makes that many steps from where it is now, wherever a lost ps has set it back to."""
        self.until("first step", lambda: self.step() >= 0, LONG)
        low = [self.step()]

        def passed():
            now = self.step()
            low[0] = min(low[0], now) if now >= 0 else low[0]
            return now >= low[0] + steps
        self.until(f"{steps} steps more", passed, LONG)

    def undisturbed(self, values, steps):
        """Returns the digest of the same job undisturbed, on this machine."""
        values = values | {"run_dir": self.folder / "calm", "steps": steps, "durability": "checkpoint", "checkpoint": "", "launch": "",
                           "ps": "'localhost:auto', 'localhost:auto'", "worker": "'localhost:auto', 'localhost:auto'"}
        file = self.folder / "calm.yaml"
        file.write_text(JOB.format(**values))
        done = subprocess.run([self.build / "launcher/dtf-launch", "-q", file], capture_output=True, text=True, timeout=300,
                              check=False)
        assert done.returncode == 0, done.stderr
        return json.loads((self.folder / "calm/summary.json").read_text())["parameters_digest"]


def the_job_ends_and_nothing_is_restarted(bench):
    values = bench.job("calm", steps=300)
    bench.start()
    for unit in TASKS:
        assert bench.host.show(unit)["ActiveState"] in ("active", "inactive"), "start waits until every task is ready"
    bench.expect_ended_well()
    assert bench.summary()["outcome"] == "done" and bench.summary()["global_step"] == 300, bench.summary()
    assert "event=memory_shared" in bench.host.journal(f"--unit={CHIEF}"), "units with user namespaces of their own don't share memory"
    assert bench.summary()["parameters_digest"] == bench.undisturbed(values, 300)


def workers_and_ps_are_killed_and_frozen(bench):
    values = bench.job("disturbed")
    bench.start()
    bench.trains_on(150)  # a checkpoint is there
    for signal, *units in (("KILL", "dtf-workerd@1"), ("KILL", CHIEF), ("KILL", "dtf-psd@1"), ("KILL", "dtf-psd@0"),
                           ("STOP", "dtf-psd@1"), ("STOP", "dtf-workerd@1"), ("KILL", *TASKS)):
        bench.injure(signal, *units)
        bench.trains_on()
    bench.stop()
    bench.expect_ended_well()
    summary = bench.summary()
    assert summary["outcome"] == "stopped", summary
    assert "Watchdog timeout" in bench.host.journal("--unit=dtf-psd@1"), bench.told()
    assert summary["parameters_digest"] == bench.undisturbed(values, summary["global_step"]), "not the same bits"


def a_lost_ps_is_refilled(bench, durability, said):
    values = bench.job("refilled", durability=durability, checkpoint="{every_seconds: 3600}")
    bench.start()
    bench.trains_on(150)
    for unit in ("dtf-psd@0", "dtf-psd@1"):
        bench.injure("KILL", unit)
        bench.trains_on()
    bench.stop()
    bench.expect_ended_well()
    assert said in bench.host.journal("--unit=dtf-*"), bench.told()
    summary = bench.summary()
    assert summary["parameters_digest"] == bench.undisturbed(values, summary["global_step"]), "not the same bits"
    shutil.rmtree(bench.host.root / "var/lib/dtf/runs/refilled")


def a_lost_ps_is_refilled_from_its_replica(bench):
    a_lost_ps_is_refilled(bench, "replica", "event=")


def a_lost_ps_is_refilled_from_snapshots(bench):
    a_lost_ps_is_refilled(bench, "{snapshot: {every_steps: 20}}", "to the snapshot of step")


def a_job_that_is_stopped_goes_on_at_the_next_start(bench):
    values = bench.job("resumed", steps=ENDLESS, checkpoint="{every_seconds: 3600}")
    bench.start()
    bench.trains_on()
    bench.stop()
    bench.expect_ended_well()
    assert bench.summary()["outcome"] == "stopped", bench.summary()
    first = bench.summary()["global_step"]
    bench.start()
    bench.trains_on()
    assert f" global_step={first} " in bench.host.journal(f"--unit={CHIEF}", "--grep=event=restored"), bench.told()
    bench.stop("dtf-workerd@1")  # any one of them will do
    bench.expect_ended_well()
    second = bench.summary()["global_step"]
    assert second > first, (first, second)
    assert bench.summary()["parameters_digest"] == bench.undisturbed(values, second), "not the same bits"


def a_job_whose_host_goes_down_is_paused_and_goes_on(bench):
    """The tasks of one host are stopped, as at its shutdown, and started again."""
    values = bench.job("paused", checkpoint="{every_seconds: 3600}", launch="launch: {on_sigterm: pause}")
    bench.start()
    bench.trains_on()
    down = ["dtf-psd@1", "dtf-workerd@1"]
    bench.host.systemctl("stop", *down)
    for unit in down:
        bench.expect(unit, ActiveState="inactive", Result="success", ExecMainStatus=75, NRestarts=0)
    for unit in set(TASKS) - set(down):
        bench.until(f"next process of {unit}", lambda unit=unit: bench.host.show(unit)["NRestarts"] == "1")
    paused = re.findall(r"event=paused step=(\d+) ", bench.host.journal(f"--unit={CHIEF}", "--grep=event=paused"))[-1]
    bench.host.systemctl("start", *down)
    bench.trains_on()
    assert f" global_step={paused} " in bench.host.journal(f"--unit={CHIEF}", "--grep=event=restored"), bench.told()
    bench.stop()
    bench.until("end of the job", bench.ended, LONG)
    for unit in TASKS:
        bench.expect(unit, ActiveState="inactive", Result="success")
    summary = bench.summary()
    assert (summary["outcome"], summary["exit_code"]) == ("stopped", 75), summary
    assert summary["parameters_digest"] == bench.undisturbed(values, summary["global_step"]), "not the same bits"


def keys_that_only_root_can_read_are_given_to_each_task(bench):
    values = bench.job("secret", steps=300)
    keys = bench.host.root / "etc/dtf/keys"
    cluster = bench.host.root / "etc/dtf/cluster.yaml"
    subprocess.run([bench.build / "launcher/dtf-launch", "keys", "init", keys, "--cluster", cluster], check=True, capture_output=True, timeout=60)
    for file in keys.iterdir():
        assert file.stat().st_uid == 0 and file.stat().st_mode & 0o77 == 0 or file.name == "ca.pem", file
    drop_ins = [bench.host.root / f"etc/systemd/system/dtf-{program}@.service.d" for program in ("psd", "workerd")]
    for drop_in, program in zip(drop_ins, ("psd", "workerd")):
        drop_in.mkdir()
        shutil.copy(bench.build / f"configs/systemd/dtf-{program}-keys.conf", drop_in / "keys.conf")
    bench.host.systemctl("daemon-reload")
    bench.start()
    bench.expect_ended_well()
    assert bench.summary()["parameters_digest"] == bench.undisturbed(values, 300), "not the same bits"
    accepted = bench.host.journal("--unit=dtf-psd@0", "--grep=event=connection_accepted")
    assert "worker/1" in accepted, bench.told()
    for drop_in in drop_ins:
        shutil.rmtree(drop_in)
    shutil.rmtree(keys)
    bench.host.systemctl("daemon-reload")


def a_mistake_in_the_file_is_not_tried_again(bench):
    bench.job("mistake")
    file = bench.host.root / "etc/dtf/cluster.yaml"
    file.write_text(file.read_text().replace("steps:", "stepz:"))
    bench.host.systemctl("reset-failed", *TASKS, check=False)
    bench.host.systemctl("start", CHIEF, check=False)
    bench.expect(CHIEF, ActiveState="failed", Result="exit-code", ExecMainStatus=78, NRestarts=0)
    assert "stepz" in bench.host.show(CHIEF).get("StatusText", ""), bench.told()


def what_had_nothing_to_save_is_failed_and_not_tried_again(bench):
    bench.job("unsaved", checkpoint="")
    bench.start()
    bench.trains_on()
    bench.stop("dtf-psd@0")
    bench.until("end of the job", bench.ended)
    for unit in ("dtf-psd@0", "dtf-workerd@0", "dtf-workerd@1"):
        bench.expect(unit, ActiveState="failed", ExecMainStatus=143, NRestarts=0)
    bench.expect("dtf-psd@1", ActiveState="inactive", ExecMainStatus=0, NRestarts=0)  # ends by itself


CASES = [the_job_ends_and_nothing_is_restarted, workers_and_ps_are_killed_and_frozen, a_lost_ps_is_refilled_from_its_replica,
         a_lost_ps_is_refilled_from_snapshots, a_job_that_is_stopped_goes_on_at_the_next_start,
         a_job_whose_host_goes_down_is_paused_and_goes_on,
         keys_that_only_root_can_read_are_given_to_each_task, a_mistake_in_the_file_is_not_tried_again,
         what_had_nothing_to_save_is_failed_and_not_tried_again]


def run_cases(build, wanted, folder):
    """Runs the cases; returns how many failed."""
    host = hosts.Host(installed(build, folder / "local"))
    try:
        bench = Bench(build, host, folder)
        return hosts.run_cases("Systemd", CASES, wanted, bench,
                               lambda: host.systemctl("stop", "dtf.target", check=False))
    finally:
        host.close()


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    if os.geteuid() != 0:
        print("SKIPPED: only root boots a host with systemd-nspawn")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        try:
            return 1 if run_cases(build, sys.argv[2:], pathlib.Path(folder)) else 0
        except hosts.NoHost as reason:
            print(f"SKIPPED: no host with systemd can be booted here: {reason}")
            return 77


if __name__ == "__main__":
    sys.exit(main())
