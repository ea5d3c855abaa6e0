#!/usr/bin/env python3
"""Hosts that a packet filter (nft) cuts off, at the start of a job over ssh and while it trains.
Each end has to find out by itself, because no message reports a dropped packet.

Usage: cut_off_test.py BUILD_FOLDER [CASE...]     exit code 77: this machine can't have such hosts;
                                                  the last line gives the reason
"""
import os
import pathlib
import re
import shutil
import sys
import tempfile
import time

import host as hosts
import three_hosts
import ways

STEPS = 150  # with a checkpoint among them
ANSWER_SECONDS = 20  # ssh itself waits for 10
UNAVAILABLE = 69
TASKS = "psd|workerd|dtf-agent"


class Bench:
    """Three hosts, a job over ssh, and the packet filters of the hosts."""

    def __init__(self, three):
        self.three, self.ssh = three, ways.Ssh(three)
        self.watch = None

    def start(self, name, restarts=10):
        self.ssh.start(name, f"restarts: {{max: {restarts}}}")
        self.watch = ways.Watch(self.ssh)

    def filter(self, name, *rules):
        """`rules`: each a hook and an action: "input drop"."""
        host = self.three.hosts[name]
        host.run("nft", "add", "table", "inet", "cut")
        for number, rule in enumerate(rules):
            hook, what = rule.split(" ", 1)
            host.run("nft", f"add chain inet cut {hook}{number} {{ type filter hook {hook} priority 0; }}")
            host.run("nft", f"add rule inet cut {hook}{number} {what}")

    def open(self, name):
        self.three.hosts[name].run("nft", "delete", "table", "inet", "cut", check=False)

    def expect_end(self, code, words, seconds):
        begin = time.monotonic()
        ended = self.ssh.process.wait(seconds)
        told = self.ssh.told()
        assert ended == code, f"{ended}, not {code}\n{told}"
        assert words in told, f"not said: {words}\n{told}"
        return time.monotonic() - begin

    def tasks_of(self, name):
        return self.three.hosts[name].run("pgrep", "-l", TASKS, check=False).stdout.split("\n")[:-1]

    def has_none(self, name):
        self.three.until(f"end of all tasks on {name}", lambda: not self.tasks_of(name))

    def says(self, words, seconds=ways.LONG):
        self.watch.until(words, lambda: words in self.ssh.told(), seconds)

    def log(self, name):
        file = self.ssh.results() / f"logs/{name}.log"
        return file.read_text(errors="replace") if file.exists() else ""

    def expect_same_bytes(self):
        self.ssh.stop()
        summary = self.ssh.summary()
        assert summary["outcome"] == "stopped", summary
        assert summary["parameters_digest"] == self.ssh.calm(summary["global_step"]), f"not the same bytes\n{self.ssh.told()}"
        for name in three_hosts.NAMES:
            self.has_none(name)

    def after(self):
        for name in three_hosts.NAMES:
            self.open(name)
        self.ssh.abort()
        self.three.forget_runs()


def one_that_drops_all_packets_is_named_at_the_start(bench):
    bench.filter("two", "input drop")
    bench.start("dropped")
    seconds = bench.expect_end(UNAVAILABLE, "two: it can't be reached", ANSWER_SECONDS)
    print(f"said after {seconds:.1f} s")
    for name in three_hosts.NAMES:
        bench.has_none(name)


def one_that_refuses_all_packets_is_named_at_once(bench):
    bench.filter("two", "input reject with icmpx type admin-prohibited")
    bench.start("refused")
    bench.expect_end(UNAVAILABLE, "two: it can't be reached", ANSWER_SECONDS / 2)


def cut_while_training(bench, rules):
    """Its tasks end by their own clock; the launcher starts it again once it is reachable."""
    bench.start("cut")
    bench.watch.trains(STEPS)
    assert len(bench.tasks_of("two")) == 3, bench.tasks_of("two")
    bench.filter("two", *rules)
    bench.has_none("two")
    bench.says("was lost with its host, two")
    bench.open("two")
    bench.says("worker/1 is back")
    bench.watch.trains(STEPS)
    spent = [int(number) for number in re.findall(r"\((\d+) of 10\)", bench.ssh.told())]
    assert spent and max(spent) < 10, bench.ssh.told()
    bench.expect_same_bytes()


def one_that_is_cut_off_while_it_trains_comes_back(bench):
    cut_while_training(bench, ("input drop", "output drop"))


def one_that_hears_and_is_not_heard_comes_back(bench):
    cut_while_training(bench, ("output drop",))


def one_that_is_heard_and_hears_nothing_comes_back(bench):
    cut_while_training(bench, ("input drop",))


def two_that_do_not_reach_each_other_train_on_when_they_do(bench):
    """dtf-launch reaches both all the time."""
    bench.start("between")
    bench.watch.trains(STEPS)
    bench.filter("three", "input ip saddr 10.99.0.2 drop", "output ip daddr 10.99.0.2 drop")
    bench.says("worker/2 was killed by SIGKILL (signal 9): starting it again")  # they gave it up
    bench.watch.until("wait in vain for the other", lambda: 'waiting for="ps/1 (two:2221) to listen"' in bench.log("worker-2.2"))
    bench.open("three")
    bench.watch.trains(STEPS)
    bench.expect_same_bytes()


def one_that_is_cut_off_for_good_ends_the_job(bench):
    bench.start("for-good", restarts=1)
    bench.watch.trains(STEPS)
    bench.filter("two", "input drop", "output drop")
    bench.expect_end(UNAVAILABLE, "was lost with its host, two, after it was started again once", ways.LONG)
    for name in three_hosts.NAMES:
        bench.has_none(name)


CASES = [one_that_drops_all_packets_is_named_at_the_start, one_that_refuses_all_packets_is_named_at_once,
         one_that_is_cut_off_while_it_trains_comes_back, one_that_hears_and_is_not_heard_comes_back,
         one_that_is_heard_and_hears_nothing_comes_back, two_that_do_not_reach_each_other_train_on_when_they_do,
         one_that_is_cut_off_for_good_ends_the_job]


def run_cases(build, wanted, folder):
    """Runs the cases; returns how many failed."""
    three = three_hosts.Hosts(build, folder, with_slurm=False)
    try:
        bench = Bench(three)
        if three.hosts["one"].run("nft", "add table inet cut", check=False).returncode != 0:
            raise hosts.NoHost("this kernel has no nftables")
        return hosts.run_cases("CutOff", CASES, wanted, bench, bench.after)
    finally:
        three.close()


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    if os.geteuid() != 0:
        print("SKIPPED: only root boots hosts with systemd-nspawn")
        return 77
    if not shutil.which("nft", path=os.environ.get("PATH", "") + ":/usr/sbin"):
        print("SKIPPED: there is no nft: scripts/install-deps.sh --tests installs it")
        return 77
    try:
        hosts.in_own_network()
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            return 1 if run_cases(build, sys.argv[2:], pathlib.Path(folder)) else 0
    except hosts.NoHost as reason:
        print(f"SKIPPED: no hosts that can be cut off can be had here: {reason}")
        return 77


if __name__ == "__main__":
    sys.exit(main())
