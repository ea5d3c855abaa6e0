#!/usr/bin/env python3
"""`launch: {via: systemd}` on a host with systemd as process 1: dtf-launch writes, starts, follows
and stops the units of a job.

Usage: systemd_launch_test.py BUILD_FOLDER [CASE...]
Exit code 77: this machine can't boot a host; the last line gives the reason.
"""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

import host as hosts
from systemd_test import ENDLESS, JOB, LONG, SOON

TASKS = ["ps/0", "ps/1", "worker/0", "worker/1"]
ENVIRONMENT = ["/usr/bin/env", "-i", "PATH=/usr/local/bin:/usr/bin:/usr/sbin", "HOME=/root"]


def installed(build, folder):
    (folder / "bin").mkdir(parents=True)
    for file in ("daemons/psd/psd", "daemons/workerd/workerd", "launcher/dtf-launch"):
        shutil.copy(build / file, folder / "bin")
    return folder


class Bench:
    """A host, the job on it, and the queries of the cases."""

    def __init__(self, build, host, folder):
        self.build, self.host, self.folder = build, host, folder
        self.name, self.launch = "", None

    def job(self, name, steps=ENDLESS, checkpoint="{every_steps: 100}", launch="via: systemd", **other):
        self.name = name
        values = {"name": name, "run_dir": f"/root/runs/{name}", "steps": steps, "durability": "checkpoint",
                  "ps": "127.0.0.1:2221, 127.0.0.1:2222", "worker": "127.0.0.1:2223, 127.0.0.1:2224",
                  "launch": f"launch: {{{launch}}}", "checkpoint": f"  checkpoint: {checkpoint or 'none'}"} | other
        (self.host.root / "root/job.yaml").write_text(JOB.format(**values))
        return values

    def dtf(self, *words, check=True, seconds=LONG):
        return self.host.run("dtf-launch", *words, check=check, seconds=seconds)

    def start(self, *words):
        """`dtf-launch up` in the background: its process (of nsenter, which waits for it) and its output."""
        self.said = open(self.folder / f"{self.name}.said", "w+")
        self.launch = subprocess.Popen(
            ["nsenter", f"--target={self.host.leader}", "--mount", "--uts", "--ipc", "--net", "--pid", "--", *ENVIRONMENT,
             "dtf-launch", "up", "/root/job.yaml", *words],
            stdin=subprocess.DEVNULL, stdout=self.said, stderr=subprocess.STDOUT,
            # nohup would make the test, and so dtf-launch, ignore it.
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL))

    def signal_launcher(self, number):
        """Signals dtf-launch itself: nsenter, which waits for it, would not pass the signal on."""
        self.host.run("sh", "-c", f"kill -{number} $(pidof dtf-launch)")

    def until_said(self, text):
        """For an endless job: a short one may be over before dtf-launch has seen its units."""
        self.until(f"'{text}'", lambda: text in (self.folder / f"{self.name}.said").read_text())

    def ended(self):
        """Returns its exit code and its output."""
        said = self.folder / f"{self.name}.said"
        try:
            code = self.launch.wait(LONG)
        except subprocess.TimeoutExpired as late:
            raise AssertionError(f"dtf-launch goes on after {LONG} s, and has said: {said.read_text()}") from late
        self.launch = None
        return code, said.read_text()

    def unit(self, task):
        return f"dtf-{self.name}@{task.replace('/', '-')}.service"

    def step(self):
        said = re.match(r"step (\d+) of", self.host.show(self.unit("worker/0")).get("StatusText", ""))
        return int(said.group(1)) if said else -1

    def told(self):
        said = self.folder / f"{self.name}.said"
        return (said.read_text() if said.exists() else "") + self.host.journal("--lines=40")

    def until(self, what, asked, seconds=LONG):
        try:
            return self.host.until(what, asked, seconds)
        except TimeoutError as late:
            raise AssertionError(f"{late}\n{self.told()}") from None

    def trains_on(self, steps=50):
        begin = self.until("first step", lambda: self.step() + 1) - 1
        self.until(f"{steps} steps more", lambda: self.step() >= begin + steps or 0 <= self.step() < begin)

    def summary(self):
        return json.loads((self.host.root / "root/runs" / self.name / "summary.json").read_text())

    def expect_nothing_left(self):
        files = self.host.run("sh", "-c", f"ls /run/systemd/system | grep 'dtf-{self.name}@' || true").stdout
        units = self.host.systemctl("list-units", "--all", "--no-legend", "--plain", f"dtf-{self.name}@*").stdout
        assert not files.strip() and not units.strip(), (files, units)

    def undisturbed(self, values, steps):
        """Returns the digest of the same job undisturbed, without units, on this machine."""
        values = values | {"launch": "", "run_dir": self.folder / "calm", "steps": steps, "checkpoint": "",
                           "ps": "'localhost:auto', 'localhost:auto'", "worker": "'localhost:auto', 'localhost:auto'"}
        file = self.folder / "calm.yaml"
        file.write_text(JOB.format(**values))
        done = subprocess.run([self.build / "launcher/dtf-launch", "-q", file], capture_output=True, text=True, timeout=300,
                              check=False)
        assert done.returncode == 0, done.stderr
        return json.loads((self.folder / "calm/summary.json").read_text())["parameters_digest"]


def the_job_ends_as_one_without_units_and_leaves_none(bench):
    values = bench.job("calm", steps=300)
    done = bench.dtf("up", "/root/job.yaml")
    assert "calm: done" in done.stdout, done
    summary = bench.summary()
    assert summary["outcome"] == "done" and summary["exit_code"] == 0 and summary["global_step"] == 300, summary
    assert [(task["name"], task["exit_code"], task["restarts"]) for task in summary["tasks"]] \
        == [(name, 0, 0) for name in TASKS], summary
    assert summary["parameters_digest"] == bench.undisturbed(values, 300), "not the same bits"
    assert "event=listening" in bench.dtf("logs", "/root/job.yaml", "worker/1").stdout
    bench.expect_nothing_left()


def a_killed_task_is_started_again_by_systemd(bench):
    values = bench.job("killed")
    bench.start()
    bench.until_said("all 4 units are ready")
    bench.trains_on(150)
    for task in ("worker/1", "ps/0", "worker/0"):
        before = int(bench.host.show(bench.unit(task))["NRestarts"])
        bench.host.systemctl("kill", "--signal=KILL", bench.unit(task))
        bench.until(f"next process of {task}", lambda task=task, before=before:
                    (shown := bench.host.show(bench.unit(task)))["SubState"] == "running"
                    and int(shown["NRestarts"]) == before + 1)
        bench.trains_on()
    bench.signal_launcher(signal.SIGINT)
    code, said = bench.ended()
    assert code == 130 and "killed: stopped" in said, (code, said)
    assert "systemd has started worker/1 again (1)" in said, said
    summary = bench.summary()
    assert summary["outcome"] == "stopped", summary
    assert {task["name"]: task["restarts"] for task in summary["tasks"]} \
        == {"ps/0": 1, "ps/1": 0, "worker/0": 1, "worker/1": 1}, summary
    assert summary["parameters_digest"] == bench.undisturbed(values, summary["global_step"]), "not the same bits"
    bench.expect_nothing_left()


def units_outlive_their_launcher_and_are_found_again(bench):
    bench.job("alone")
    bench.start()
    bench.trains_on()
    bench.signal_launcher(signal.SIGKILL)
    bench.launch.wait(SOON)
    bench.trains_on()
    again = bench.dtf("up", "/root/job.yaml", check=False)
    assert again.returncode == 69 and "runs already" in again.stderr and "dtf-launch stop" in again.stderr, again
    assert "alone: running" in bench.dtf("status", "/root/job.yaml").stdout
    attached = subprocess.Popen(
        ["nsenter", f"--target={bench.host.leader}", "--mount", "--uts", "--ipc", "--net", "--pid", "--", *ENVIRONMENT,
         "dtf-launch", "attach", "/root/job.yaml"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True)
    stopped = bench.dtf("stop", "/root/job.yaml")
    assert re.search(r"alone: stopped at step \d+, saved", stopped.stdout), stopped
    shown, _ = attached.communicate(timeout=SOON)
    assert attached.returncode == 0 and "alone: stopped" in shown, shown
    bench.expect_nothing_left()
    assert bench.dtf("stop", "/root/job.yaml", check=False).returncode == 3
    # The same command continues from the checkpoint.
    first = bench.summary()["global_step"]
    detached = bench.dtf("up", "-d", "/root/job.yaml")
    assert "dtf-launch attach" in detached.stdout, detached
    bench.trains_on()
    bench.dtf("stop", "/root/job.yaml")
    assert bench.summary()["global_step"] > first, (first, bench.summary())
    bench.expect_nothing_left()


def of_two_starts_at_once_one_is_the_job(bench):
    bench.job("twice")
    command = ["nsenter", f"--target={bench.host.leader}", "--mount", "--uts", "--ipc", "--net", "--pid", "--", *ENVIRONMENT,
               "dtf-launch", "up", "-d", "/root/job.yaml"]
    for attempt in range(2):
        runs = [f"/root/runs/twice-{attempt}-{which}" for which in ("a", "b")]
        starts = [subprocess.Popen([*command, "--run-dir", run], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True) for run in runs]
        ends = [(start.communicate(timeout=LONG)[1], start.returncode, run) for start, run in zip(starts, runs)]
        (_, _, winner), (said, _, _) = sorted(ends, key=lambda end: end[1])
        assert sorted(end[1] for end in ends) == [0, 69] and "runs already" in said, ends
        stopped = bench.dtf("stop", "/root/job.yaml", "--run-dir", winner)
        assert "twice: stopped" in stopped.stdout, (ends, stopped)
        bench.expect_nothing_left()


# A systemctl that does not answer while there is a file /root/silent. Only dtf-launch's queries
# match; the tests use other words.
SILENT = """#!/bin/sh
case "$*" in
"--no-ask-password show --property=Id"*)
  if [ -e /root/silent ]; then echo "Failed to connect to bus: Connection refused" >&2; exit 1; fi;;
esac
exec /usr/bin/systemctl "$@"
"""


def a_systemd_that_does_not_answer_is_asked_again(bench):
    systemctl, silent = bench.host.local / "bin/systemctl", bench.host.root / "root/silent"
    systemctl.write_text(SILENT)
    systemctl.chmod(0o755)
    try:
        bench.job("unheard")
        bench.start()
        bench.until_said("all 4 units are ready")
        silent.touch()
        bench.until_said("warning: systemd does not report the state of the units, asking again")
        bench.trains_on()
        silent.unlink()
        bench.until_said("systemd answers again")
        bench.signal_launcher(signal.SIGINT)
        code, said = bench.ended()
        assert code == 130 and "unheard: stopped" in said, (code, said)
        bench.expect_nothing_left()
    finally:
        systemctl.unlink()
        silent.unlink(missing_ok=True)


def units_go_on_without_a_terminal_and_belong_to_their_run(bench):
    bench.job("hungup")
    bench.start()
    bench.trains_on()
    bench.signal_launcher(signal.SIGHUP)
    code, said = bench.ended()
    assert code == 129, (code, said)
    bench.trains_on()
    for verb in ("stop", "attach"):  # of the same name, but another run
        other = bench.dtf(verb, "/root/job.yaml", "--run-dir", "/root/runs/other", check=False)
        assert other.returncode == 69 and "another run: " in other.stderr and "/root/runs/hungup" in other.stderr, other
    bench.trains_on()
    assert "hungup: stopped" in bench.dtf("stop", "/root/job.yaml").stdout
    bench.expect_nothing_left()


def what_can_not_run_is_said_and_leaves_nothing(bench):
    bench.job("mistaken", launch="via: systemd, restarts: {max: 0}")
    file = bench.host.root / "root/job.yaml"
    text = file.read_text()
    # A host that isn't this one, and does not answer.
    file.write_text(text.replace("127.0.0.1:2224", "192.0.2.1:2224"))
    done = bench.dtf("up", "/root/job.yaml", check=False)
    assert done.returncode == 69 and "192.0.2.1: it can't be reached" in done.stderr, done
    # The unit would pass it at each start.
    done = bench.dtf("up", "/root/job.yaml", "--fresh", check=False)
    assert done.returncode == 2 and "--fresh is not for units" in done.stderr, done
    # A port that is taken.
    file.write_text(text)
    holder = subprocess.Popen(
        ["nsenter", f"--target={bench.host.leader}", "--mount", "--net", "--pid", "--", "/usr/bin/python3", "-c",
         "import socket,sys; s=socket.create_server(('127.0.0.1',2222)); print('held',flush=True); sys.stdin.read()"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert holder.stdout.readline() == "held\n"
    done = bench.dtf("up", "/root/job.yaml", check=False)
    assert done.returncode == 69 and "2222" in done.stderr, done
    holder.communicate("")
    # A task that fails for good ends the others, and is named.
    bench.start()
    bench.until("units", lambda: bench.host.show(bench.unit("worker/1"))["SubState"] == "running")
    bench.host.systemctl("kill", "--signal=KILL", bench.unit("worker/1"))
    code, said = bench.ended()
    assert code == 137 and "worker/1 was killed by SIGKILL" in said, (code, said)
    assert bench.summary()["outcome"] == "failed" and bench.summary()["exit_code"] == 137, bench.summary()
    bench.expect_nothing_left()


def a_dry_run_prints_units_and_starts_none(bench):
    bench.job("planned", steps=10)
    said = bench.dtf("up", "--dry-run", "/root/job.yaml").stdout
    assert "# /run/systemd/system/dtf-planned@worker-1.service\n" in said, said
    assert 'ExecStart="/usr/local/bin/workerd" "--cluster" "/root/job.yaml" "--task" "1"\n' in said, said
    assert "systemctl start --no-block dtf-planned@ps-0.service" in said, said
    told = json.loads(bench.dtf("up", "--dry-run", "--json", "/root/job.yaml").stdout)
    assert [unit["file"] for unit in told["units"]] \
        == [f"/run/systemd/system/{bench.unit(task)}" for task in TASKS], told
    bench.expect_nothing_left()


def anybody_else_has_units_of_their_own(bench):
    host, runtime = bench.host, "/run/user/1000"
    host.run("mkdir", "-p", runtime, "/home/me")
    host.run("chown", "1000:1000", runtime, "/home/me")
    bench.job("theirs", steps=100, run_dir="runs/theirs")
    shutil.copy(host.root / "root/job.yaml", host.root / "home/me/job.yaml")

    def as_user(*command):
        return host.run("setpriv", "--reuid=1000", "--regid=1000", "--clear-groups", "env", "--chdir=/home/me", "HOME=/home/me",
                        f"XDG_RUNTIME_DIR={runtime}", *command, check=False, seconds=LONG)
    alone = as_user("dtf-launch", "job.yaml")
    assert alone.returncode == 69 and "loginctl enable-linger me" in alone.stderr, alone
    # logind would start it at a login.
    host.run("systemd-run", "--uid=1000", "--gid=1000", "--unit=their-systemd", "--property=Delegate=yes",
             f"--setenv=XDG_RUNTIME_DIR={runtime}", "/lib/systemd/systemd", "--user")
    bench.until("systemd of the user", lambda: as_user("systemctl", "--user", "show", "--property=Version").returncode == 0)
    done = as_user("dtf-launch", "job.yaml")
    assert done.returncode == 0 and "theirs: done" in done.stdout, done
    assert "warning: units of me end with that user's last session" in done.stderr, done
    left = as_user("sh", "-c", f"ls {runtime}/systemd/user; systemctl --user list-units --all --no-legend 'dtf-*@*'")
    assert left.stdout.strip() == "", left
    host.systemctl("stop", "their-systemd")


CASES = [the_job_ends_as_one_without_units_and_leaves_none, a_killed_task_is_started_again_by_systemd,
         units_outlive_their_launcher_and_are_found_again, of_two_starts_at_once_one_is_the_job,
         a_systemd_that_does_not_answer_is_asked_again, units_go_on_without_a_terminal_and_belong_to_their_run,
         what_can_not_run_is_said_and_leaves_nothing,
         a_dry_run_prints_units_and_starts_none, anybody_else_has_units_of_their_own]


def run_cases(build, wanted, folder):
    """Runs the cases; returns how many failed."""
    etc = {"passwd": hosts.ETC["passwd"] + "me:x:1000:1000::/home/me:/bin/sh\n", "group": hosts.ETC["group"] + "me:x:1000:\n"}
    host = hosts.Host(installed(build, folder / "local"), etc=etc)
    bench = Bench(build, host, folder)

    def clean():
        if bench.launch is not None and bench.launch.poll() is None:
            bench.launch.kill()
        bench.launch = None
        host.systemctl("kill", "--signal=KILL", "dtf-*@*", check=False)
        host.systemctl("stop", "dtf-*@*", check=False)
        host.systemctl("reset-failed", check=False)
    try:
        return hosts.run_cases("SystemdLaunch", CASES, wanted, bench, clean)
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
