"""A Slurm of two nodes: hosts of host.py on a bridge, with munged, slurmd and, on the first, slurmctld from this machine's /usr."""
import os
import pathlib
import re
import shutil

import host as hosts

NODES = ("one", "two")
USER = 1000
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "unshare", "ip")
KILL_WAIT = 15  # seconds from SIGTERM to SIGKILL, when a job is cancelled
CONF = f"""ClusterName=dtf
SlurmctldHost=one(10.99.0.1)
SlurmUser=root
AuthType=auth/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
KillWait={KILL_WAIT}
MinJobAge=3600
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,sched_interval=5
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
StateSaveLocation=/var/spool/slurmctld
SlurmdSpoolDir=/var/spool/slurmd
SlurmctldLogFile=/var/log/slurmctld.log
SlurmdLogFile=/var/log/slurmd.log
"""
GRACE = 25  # seconds that a job of the partition `spare` has when one of `urgent` takes its nodes
PARTITIONS = f"""PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP PreemptMode=OFF
PartitionName=spare Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=1 PreemptMode=REQUEUE GraceTime={GRACE}
PartitionName=hasty Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=1 PreemptMode=REQUEUE
PartitionName=urgent Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=9 PreemptMode=OFF
"""
MUNGE = (103, 105)
READY_SECONDS = 30


def etc(names, home):
    """Files of the /etc of each node; the first is where slurmctld runs, alice is at home in `home`."""
    numbered = [(name, f"10.99.0.{index}") for index, name in enumerate(names, 1)]
    nodes = "".join(f"NodeName={name} NodeAddr={address} CPUs=2 State=UNKNOWN\n" for name, address in numbered)
    return {
        "slurm/slurm.conf": CONF + nodes + PARTITIONS,
        "hosts": "127.0.0.1 localhost\n" + "".join(f"{address} {name}\n" for name, address in numbered),
        "passwd": hosts.ETC["passwd"] + f"munge:x:{MUNGE[0]}:{MUNGE[1]}::/nonexistent:/usr/sbin/nologin\n"
                                        f"alice:x:{USER}:{USER}::{home}:/bin/bash\n",
        "group": hosts.ETC["group"] + f"munge:x:{MUNGE[1]}:\nalice:x:{USER}:\n",
    }


def prepare(node):
    """Writes the files that munged, slurmctld and slurmd need on a booted host."""
    for folder in ("etc/munge", "var/lib/munge", "var/log/munge"):
        (node.root / folder).mkdir(parents=True)
        (node.root / folder).chmod(0o700)
    (node.root / "etc/munge/munge.key").write_bytes(b"a secret of these hosts alone" * 4)
    (node.root / "etc/munge/munge.key").chmod(0o400)
    for file in ("etc/munge/munge.key", "etc/munge", "var/lib/munge", "var/log/munge"):
        os.chown(node.root / file, *MUNGE)
    (node.root / "etc/alternatives").mkdir()
    for program in pathlib.Path("/etc/alternatives").glob("slurm*"):
        (node.root / "etc/alternatives" / program.name).symlink_to(os.readlink(program))
    for folder in ("slurmctld", "slurmd"):
        (node.root / "var/spool" / folder).mkdir(parents=True)
    (node.root / "var/tmp").mkdir(exist_ok=True)
    (node.root / "var/tmp").chmod(0o1777)


def missing():
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    return [program for program in PROGRAMS if not shutil.which(program, path=path)]


class Cluster:
    """Owns two hosts; close() ends them. `shared` is a folder of this machine that both have as
    /shared.

    Its user is alice, an ordinary user.
    """

    def __init__(self, local, shared):
        if missing():
            raise hosts.NoHost("there is no " + ", ".join(missing()) + ": scripts/install-deps.sh --slurm installs them")
        self.shared = shared
        os.chmod(shared, 0o777)
        self.nodes = []
        try:
            for index, name in enumerate(NODES, 1):
                self._start_node(local, index, name)
            self.nodes[0].until("idle nodes", self._all_idle, READY_SECONDS)
        except BaseException:
            self.close()
            raise

    def _start_node(self, local, index, name):
        node = hosts.Host(local, name=name, etc=etc(NODES, "/shared"), network=["--network-bridge=dtf-bridge"],
                          binds=[f"{self.shared}:/shared"])
        self.nodes.append(node)
        node.run("ip", "addr", "add", f"10.99.0.{index}/24", "dev", "host0")
        node.run("ip", "link", "set", "host0", "up")
        prepare(node)
        node.systemctl("start", "munge")
        if index == 1:
            node.systemctl("start", "slurmctld")
        node.systemctl("start", "slurmd")

    def _all_idle(self):
        states = self.nodes[0].run("sinfo", "--noheader", "--format=%T", check=False).stdout.split()
        return states == ["idle"] and len(self.nodes) == len(NODES)

    def run(self, *command, node=0, check=True, seconds=60):
        """Runs a command as alice, in the shared folder."""
        return self.nodes[node].run(
            "setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "env", "HOME=/shared",
            "sh", "-c", 'cd /shared && exec "$@"', "-", *command, check=check, seconds=seconds)

    def job(self, number):
        """Returns fields of `scontrol show job`: JobState, ExitCode, Restarts..."""
        return dict(re.findall(r"(\w+)=(\S*)", self.run("scontrol", "show", "job", number).stdout))

    def told(self, number):
        """Returns the output of its batch script."""
        file = self.shared / f"slurm-{number}.out"
        return file.read_text(errors="replace") if file.exists() else ""

    def logs(self):
        text = ""
        for node in self.nodes:
            for name in ("slurmctld", "slurmd"):
                file = node.root / f"var/log/{name}.log"
                lines = file.read_text(errors="replace").splitlines()[-10:] if file.exists() else []
                text += "".join(f"{node.name} {name}: {line}\n" for line in lines)
        return text

    def close(self):
        for node in self.nodes:
            node.close()
