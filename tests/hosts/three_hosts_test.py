#!/usr/bin/env python3
"""Jobs on three hosts, each with a network and a disk of its own: by ssh, as units of systemd, by
Slurm. While they train a cable is pulled, a host is killed and started again, a disk is full,
keys are changed.

Usage: three_hosts_test.py BUILD_FOLDER [CASE...]     prints the table "Tried" of scripts/README.md;
                                                      exit code 77: this machine can't have such
                                                      hosts; the last line gives the reason

Each job trains until it is stopped. It is then compared with an undisturbed one of as many
steps.
"""
import os
import pathlib
import sys
import tempfile
import time

import host as hosts
import three_hosts
import ways

HEAD = ("| by | fault during training | result | stands still for | bytes |", "|---|---|---|---|---|")
STEPS = 150  # with a checkpoint among them


class Trial:
    """The arguments of the deeds below. `way` is the job, `watch` follows its progress."""

    def __init__(self, three, way):
        self.three, self.way = three, way
        self.watch = ways.Watch(way)

    def lasts(self, seconds):
        end = time.monotonic() + seconds
        self.watch.until("end", lambda: time.monotonic() > end)

    def cable_out(self, name, seconds):
        self.three.cable(name, "down")
        self.lasts(seconds)
        self.three.cable(name, "up")

    def power_cut(self, name):
        self.three.kill(name)
        self.lasts(2 * ways.LEASE)
        self.three.hosts[name].boot()

    def reboot(self, name):
        self.three.shut_down(name)
        self.lasts(2 * ways.LEASE)
        self.three.hosts[name].boot()

    def disk_is_full(self, place):
        """Lasts until one checkpoint has failed and, with room again, another has succeeded."""
        filler = self.three.fill(place)
        self.watch.until("failure to save", lambda: "event=checkpoint_failed" in self.way.chief_told())
        last = self.way.saved()[-1]
        self.watch.trains(STEPS)
        assert self.way.saved()[-1] == last, "a checkpoint was saved where there is no room"
        filler.unlink()
        self.watch.until("a checkpoint", lambda: self.way.saved()[-1] > last)


def nothing(_trial):
    pass


def a_cable_is_out_for_less_than_the_lease(trial):
    trial.cable_out("two", ways.LEASE / 4)


def a_cable_is_out_for_three_leases(trial):
    trial.cable_out("two", 3 * ways.LEASE)


def the_chiefs_cable_is_out_for_three_leases(trial):
    trial.cable_out("one", 3 * ways.LEASE)


def a_workers_host_is_killed(trial):
    trial.power_cut("three")


def a_ps_host_is_killed(trial):
    trial.power_cut("two")


def the_chiefs_host_is_killed(trial):
    trial.power_cut("one")


def a_ps_host_is_rebooted(trial):
    trial.reboot("two")


def the_chiefs_disk_is_full(trial):
    trial.disk_is_full(trial.three.disk("one"))


def the_launchers_disk_is_full(trial):
    filler = trial.three.fill(pathlib.Path(three_hosts.DISK))
    trial.lasts(ways.LEASE)
    filler.unlink()


def keys_are_renewed(trial):
    trial.watch.until("use of the renewed keys", trial.way.renew())


DEEDS = [
    (nothing, "nothing"),
    (a_cable_is_out_for_less_than_the_lease, f"the cable of a ps and a worker is out for {ways.LEASE // 4} s, the lease is {ways.LEASE} s"),
    (a_cable_is_out_for_three_leases, f"the cable of a ps and a worker is out for {3 * ways.LEASE} s"),
    (the_chiefs_cable_is_out_for_three_leases, f"the cable of the chief and a ps is out for {3 * ways.LEASE} s"),
    (a_workers_host_is_killed, f"a worker's host is killed, and boots {2 * ways.LEASE} s later"),
    (a_ps_host_is_killed, f"the host of a ps and a worker is killed, and boots {2 * ways.LEASE} s later"),
    (the_chiefs_host_is_killed, f"the host of the chief and a ps is killed, and boots {2 * ways.LEASE} s later"),
    (a_ps_host_is_rebooted, f"the host of a ps and a worker is shut down, and boots {2 * ways.LEASE} s later (`on_sigterm: pause`)"),
    (the_chiefs_disk_is_full, "the chief's disk is full for a while"),
    (the_launchers_disk_is_full, f"dtf-launch's disk is full for {ways.LEASE} s"),
    (keys_are_renewed, "keys are renewed"),
]
PAUSING = {a_ps_host_is_rebooted: "{via: local, on_sigterm: pause}"}  # deeds for which the job has another `launch`
# Not possible: on Slurm the first host is the controller's and dtf-launch's; units have no
# dtf-launch.
NOT_TRIED = {(ways.Slurm, the_chiefs_host_is_killed), (ways.Slurm, the_chiefs_cable_is_out_for_three_leases),
             (ways.Slurm, the_launchers_disk_is_full), (ways.Units, the_launchers_disk_is_full),
             (ways.Ssh, a_ps_host_is_rebooted), (ways.Slurm, a_ps_host_is_rebooted)}


# No task has to be started again, except units, which get new keys that way.
QUIET = {nothing, a_cable_is_out_for_less_than_the_lease, the_chiefs_disk_is_full, the_launchers_disk_is_full, keys_are_renewed}


def happened(way, deed, digest):
    """Returns the words of the row."""
    again = way.again
    said = ("started again: " + ", ".join(again)) if again else "no task is started again"
    if deed is the_chiefs_disk_is_full:
        said += f"; {way.summary()['checkpoint']['failed']} checkpoints fail, the next ones don't"
    same = way.summary()["parameters_digest"] == digest
    return said, "as undisturbed" if same else "OTHER"


def tried(bench, kind, deed, words):
    """Prints one row. `bench`: the hosts, the ways that were made, and the rows so far."""
    way = bench.way(kind)
    trial = Trial(bench.three, way)
    way.launch = PAUSING.get(deed, kind.launch)
    way.start(deed.__name__)
    trial.watch.trains(STEPS)
    trial.watch.begin()
    deed(trial)
    trial.watch.trains(STEPS)
    way.again = way.started_again()
    if deed in QUIET and not (deed is keys_are_renewed and kind is ways.Units):
        assert not way.again, f"started again: {way.again}\n{way.told()[-6000:]}"
    way.stop()
    summary = way.summary()
    assert summary["outcome"] == "stopped", summary
    said, same = happened(way, deed, way.calm(summary["global_step"]))
    bench.rows.append(f"| {way.name} | {words} | {said} | {trial.watch.longest:.1f} s | {same} |")
    print(bench.rows[-1], flush=True)
    assert same == "as undisturbed", f"{summary}\n{way.told()[-6000:]}"


class Bench:
    def __init__(self, three):
        self.three, self.rows, self.ways = three, [], {}

    def way(self, kind):
        if kind not in self.ways:
            self.ways[kind] = kind(self.three)
        return self.ways[kind]

    def after(self):
        self.three.mend()
        for way in self.ways.values():
            way.abort()
        self.three.forget_runs()


def cases(has_slurm):
    for kind in (ways.Ssh, ways.Units, ways.Slurm):
        for deed, words in DEEDS:
            if (kind, deed) in NOT_TRIED:
                continue

            def case(bench, kind=kind, deed=deed, words=words):
                tried(bench, kind, deed, words)
            case.__name__ = f"{kind.name}.{deed.__name__}"
            if kind is ways.Slurm and not has_slurm:
                print(f"[ RUN      ] Tried.{case.__name__}\nSkipped: there is no Slurm: scripts/install-deps.sh --slurm installs it\n"
                      f"[  SKIPPED ] Tried.{case.__name__} (0 ms)")
            else:
                yield case


def run_cases(build, wanted, folder):
    """Runs the cases; returns how many failed."""
    three = three_hosts.Hosts(build, folder)
    try:
        bench = Bench(three)
        failed = hosts.run_cases("Tried", cases(three.has_slurm), wanted, bench, bench.after)
        print("\n".join((f"data: {'MNIST' if three.has_mnist else 'the digits that dtf draws'}", *HEAD, *bench.rows)))
        return failed
    finally:
        three.close()


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
        print(f"SKIPPED: three hosts can't be had here: {reason}")
        return 77


if __name__ == "__main__":
    sys.exit(main())
