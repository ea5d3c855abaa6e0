"""The ways to run a job on three hosts: by ssh, as units, by Slurm; and a watch of its progress.

By Slurm dtf-launch runs on the first of them, by ssh beside them, and units do without.
"""
import contextlib
import http.client
import json
import pathlib
import re
import shutil
import ssl
import subprocess
import time
import urllib.request

import slurm
from three_hosts import DISK, LONG, NAMES, SOON, SSH_PORTS, must

METRICS = 9400  # of ps/0, which is the first task of its host
LEASE = 4
ENDLESS = 100_000_000
LOOK = 0.1  # seconds between two looks at its step
JOB = """
job: tried
run_dir: {run_dir}
cluster: {cluster}
{keys}
metrics: {{port: %d}}
launch: {launch}
timeouts: {{lease_seconds: {lease}, stop_seconds: 20}}
train:
  model:
    input: {{shape: [28, 28, 1]}}
    layers: [flatten: , dense: {{units: 64, activation: relu}}, dense: {{units: 10}}]
    loss: sparse_categorical_crossentropy
  data: {{train: {data}, batch_size: 240, seed: 7}}
  optimizer: {{adam: {{learning_rate: 0.001}}}}
  replication: {{mode: sync}}
  steps: {steps}
  checkpoint: {{every_steps: 100, gather: true}}
""" % METRICS
CLUSTER = ("{{ps: ['one:{0}', 'two:{0}'], worker: [{{address: 'one:{1}', threads: 1}}, {{address: 'two:{1}', threads: 1}}, "
           "{{address: 'three:{1}', threads: 1}}]}}")
LOCAL = "{ps: {count: 2}, worker: {count: 3, threads: 1}}"
TASKS = {"one": ("ps/0", "worker/0"), "two": ("ps/1", "worker/1"), "three": ("worker/2",)}
SSH_CONFIG = "Host *\n  IdentitiesOnly yes\n  UserKnownHostsFile {}\n  GlobalKnownHostsFile none\n"


class Way:
    """A job on three hosts; the subclasses below differ in how they run it. Borrows the hosts."""

    name = ""
    launch = ""
    cluster = CLUSTER.format(2221, 2222)
    keys = "keys: keys"

    def __init__(self, three):
        self.three = three
        self.job = ""

    def text(self, job):
        return JOB.format(run_dir=self.run_dir(job), cluster=self.cluster, keys=self.keys, launch=self.launch,
                          lease=LEASE, data=self.three.data(), steps=ENDLESS)

    def run_dir(self, job):
        return f"{DISK}/runs/{job}"

    def started_again(self):
        """Returns the names of tasks that a running job has started again."""
        return sorted(set(re.findall(r"(\w+/\d+) is back", self.told())))

    def chief_told(self):
        return "\n".join(file.read_text(errors="replace") for file in (self.results() / "logs").glob("worker-0.*"))

    def has_ended(self):
        """Whether to stop waiting, because the job has ended."""
        return False

    def read(self, place, name):
        try:
            return json.loads((place / name).read_text())
        except (OSError, json.JSONDecodeError):
            return {}

    def step(self):
        """Returns the step that ps/0 reports over TLS; -1: no answer, or no values yet."""
        keys = self.keys_here()
        trust = ssl.create_default_context(cafile=keys / "ca.pem")
        trust.check_hostname = False  # a certificate names job and task
        try:
            trust.load_cert_chain(keys / "client.pem")
            with urllib.request.urlopen(f"https://one:{METRICS}/metrics", timeout=1, context=trust) as answer:
                found = re.search(r"(?m)^dtf_global_step\{.*\} (\d+)$", answer.read().decode())
        except (OSError, http.client.HTTPException):
            found = None
        return int(found.group(1)) if found else -1

    def summary(self):
        return self.read(self.results(), "summary.json")

    def saved(self):
        """Steps of the checkpoints that are whole."""
        folder = self.files() / "checkpoints"
        return sorted(int(each.name[5:]) for each in folder.glob("step-*") if each.name[5:].isdigit())

    def files(self):
        """The chief's files, as seen from outside the hosts."""
        return self.three.disk("one") / "runs" / self.job

    def results(self):
        return self.files()

    def keys_here(self):
        raise NotImplementedError

    def calm(self, steps):
        """Returns the digest of the same job undisturbed, on one host."""
        folder = self.three.folder / "calm"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        text = JOB.format(run_dir=folder / "run", cluster=LOCAL, keys="", launch="{via: local}", lease=LEASE,
                          data=self.three.data(outside=True), steps=steps)
        (folder / "calm.yaml").write_text(text)
        must(self.three.build / "launcher/dtf-launch", "-q", folder / "calm.yaml")
        return self.read(folder / "run", "summary.json")["parameters_digest"]


class Ssh(Way):
    """dtf-launch beside the hosts, which it reaches as alice."""

    name = "ssh"

    def __init__(self, three):
        super().__init__(three)
        self.folder = three.folder / "ssh"
        self.folder.mkdir()
        (self.folder / "ssh_config").write_text(SSH_CONFIG.format(three.folder / "known"))
        self.process = None

    def start(self, job, more="restarts: {max: 10}"):
        """`more`: of `launch`."""
        self.job = job
        self.launch = (f"{{via: ssh, user: alice, port: {SSH_PORTS['one']}, identity: {self.three.folder}/id, ssh_config: ssh_config, "
                       f"hosts: [{{host: three, port: {SSH_PORTS['three']}}}], {more}}}")
        file = self.folder / "job.yaml"
        file.write_text(self.text(job))
        if not (self.folder / "keys").exists():
            must(self.three.build / "launcher/dtf-launch", "keys", "init", self.folder / "keys", "--cluster", file)
        self.process = subprocess.Popen([self.three.build / "launcher/dtf-launch", file], stdin=subprocess.DEVNULL,
                                        stdout=open(self.folder / "said", "w"), stderr=subprocess.STDOUT)

    def results(self):
        return pathlib.Path(DISK) / "runs" / self.job

    def keys_here(self):
        return self.folder / "keys"

    def has_ended(self):
        return self.process.poll() is not None

    def renew(self):
        """The launcher reports each host that has received its keys."""
        must(self.three.build / "launcher/dtf-launch", "keys", "renew", self.folder / "keys")
        return lambda: all(f"the renewed keys of its tasks were sent to {name}" in self.told() for name in NAMES)

    def told(self):
        return (self.folder / "said").read_text(errors="replace")

    def stop(self):
        self.process.terminate()
        code = self.process.wait(LONG)
        assert code == 0, f"{code}\n{self.told()}"

    def abort(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(SOON)
            self.process.kill()
            self.process.wait()


class Units(Way):
    """The same file and units on each host, and each has the keys of its own tasks alone, root's."""

    name = "systemd"
    launch = "{via: local}"
    keys = ""  # credentials: the drop-in keys.conf

    def __init__(self, three):
        super().__init__(three)
        self.keys_folder = three.folder / "units-keys"
        self.since, self.boots = 0, {}
        for name, host in three.hosts.items():
            (host.root / "etc/dtf/keys").mkdir(parents=True)
            system = host.root / "etc/systemd/system"
            (system / "dtf-.service.d").mkdir()
            (system / "dtf-.service.d/hosts.conf").write_text("[Service]\nIPAddressAllow=10.99.0.0/24\n")
            for program in ("psd", "workerd"):
                (system / f"dtf-{program}@.service.d").mkdir()
                shutil.copy(three.build / f"configs/systemd/dtf-{program}-keys.conf", system / f"dtf-{program}@.service.d/keys.conf")
            host.systemctl("daemon-reload")
            host.systemctl("enable", *(self.unit(task) for task in TASKS[name]))

    @staticmethod
    def unit(task):
        kind, number = task.split("/")
        return f"dtf-{'psd' if kind == 'ps' else 'workerd'}@{number}"

    def run_dir(self, job):
        return f"runs/{job}"

    def files(self):
        return self.three.disk("one") / "state/runs" / self.job

    def keys_here(self):
        return self.keys_folder

    def start(self, job):
        self.job, self.since = job, int(time.time())
        self.boots = {name: host.boots for name, host in self.three.hosts.items()}
        file = self.three.folder / "units.yaml"
        file.write_text(self.text(job))
        if not self.keys_folder.exists():
            must(self.three.build / "launcher/dtf-launch", "keys", "init", self.keys_folder, "--cluster", file)
        for name, host in self.three.hosts.items():
            (host.root / "etc/dtf/cluster.yaml").write_text(self.text(job))
            self.give_keys(name)
            host.systemctl("reset-failed", check=False)
            host.systemctl("enable", "dtf.target")  # until the case is over: a host that boots starts its tasks
            host.systemctl("start", "--no-block", "dtf.target")

    def give_keys(self, name):
        place = self.three.hosts[name].root / "etc/dtf/keys"
        for file in ("ca.pem", *(task.replace("/", "-") + ".pem" for task in TASKS[name])):
            shutil.copy(self.keys_folder / file, place / file)

    def show(self, name, task):
        host = self.three.hosts[name]
        if host.leader is None:
            return {}
        try:
            return host.show(self.unit(task))
        except (RuntimeError, subprocess.TimeoutExpired):  # its systemd isn't there yet
            return {}

    def chief_told(self):
        return self.three.hosts["one"].journal("--unit=dtf-workerd@0", f"--since=@{self.since}")

    def started_again(self):
        return [task for name in NAMES for task in TASKS[name]
                if self.boots[name] != self.three.hosts[name].boots or int(self.show(name, task).get("NRestarts") or 0) > 0]

    def renew(self):
        """A unit reads its keys when it starts, so the units are restarted one after the other."""
        must(self.three.build / "launcher/dtf-launch", "keys", "renew", self.keys_folder)
        left = [(name, task) for name in NAMES for task in TASKS[name]]
        for name in NAMES:
            self.give_keys(name)

        def is_ready(name, task, restarts):
            shown = self.show(name, task)
            return shown.get("SubState") == "running" and int(shown["NRestarts"]) > restarts
        asked = []

        def all_ready():
            while not asked or is_ready(*asked[-1]):
                if not left:
                    return True
                name, task = left.pop(0)
                asked.append((name, task, int(self.show(name, task)["NRestarts"])))
                self.three.hosts[name].systemctl("kill", "--signal=KILL", self.unit(task))
            return False
        return all_ready

    def told(self):
        return "\n".join(host.journal("--unit=dtf-*", "--lines=300") for host in self.three.hosts.values() if host.leader)

    def stop(self):
        self.stop_all()
        for name in NAMES:
            for task in TASKS[name]:
                shown = self.show(name, task)
                assert shown["ActiveState"] == "inactive", f"{name}: {task}: {shown['ActiveState']}\n{self.told()}"

    def stop_all(self):
        stops = [subprocess.Popen(["nsenter", f"--target={host.leader}", "--all", "--", "/usr/bin/systemctl", "stop", "dtf-*@*"])
                 for host in self.three.hosts.values() if host.leader]
        for each in stops:
            each.wait(LONG)

    def abort(self):
        self.stop_all()
        for host in self.three.hosts.values():
            host.systemctl("disable", "dtf.target", check=False)


class Slurm(Way):
    """Submitted on the first of the hosts, where Slurm runs dtf-launch."""

    name = "Slurm"
    launch = "{via: slurm, nodes: 3, time: 30, sbatch: [--exclusive, --requeue]}"

    def __init__(self, three):
        super().__init__(three)
        self.number = ""
        self.until_idle()

    def run(self, *command, check=True):
        return self.three.hosts["one"].run(
            "setpriv", f"--reuid={slurm.USER}", f"--regid={slurm.USER}", "--clear-groups", "env", f"HOME={DISK}/home",
            "sh", "-c", f'cd {DISK}/home && exec "$@"', "-", *command, check=check)

    def keys_here(self):
        return self.three.disk("one") / "home/keys"

    def until_idle(self):
        self.three.until("idle nodes", lambda: self.run("sinfo", "--noheader", "--format=%T", check=False).stdout.split() == ["idle"], LONG)

    def start(self, job):
        self.job = job
        self.until_idle()
        home = self.three.disk("one") / "home"
        (home / "job.yaml").write_text(self.text(job))
        if not (home / "keys").exists():
            self.run("dtf-launch", "keys", "init", "keys", "--cluster", "job.yaml")
        self.number = json.loads(self.run("dtf-launch", "submit", "job.yaml", "--json").stdout)["slurm_job"]

    def has_ended(self):
        return self.state().get("JobState") in ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT")

    def state(self):
        return dict(re.findall(r"(\w+)=(\S*)", self.run("scontrol", "show", "job", self.number, check=False).stdout))

    def renew(self):
        self.run("dtf-launch", "keys", "renew", "keys")
        return lambda: all(f"the renewed keys of its tasks were sent to {name}" in self.told() for name in NAMES)

    def told(self):
        file = self.three.disk("one") / f"home/slurm-{self.number}.out"
        return file.read_text(errors="replace") if file.exists() else ""

    def stop(self):
        self.run("scancel", "--batch", "--signal=TERM", self.number)
        self.three.until("end of the job", self.has_ended, LONG)
        assert self.state()["JobState"] == "COMPLETED", f"{self.state()}\n{self.told()}"

    def abort(self):
        self.run("scancel", "--user=alice", check=False)
        self.three.until("empty queue", lambda: not self.run("squeue", "--noheader").stdout, LONG)


class Watch:
    """Follows a job's furthest step and its longest standstill; repeated steps don't count."""

    def __init__(self, way):
        self.way = way
        self.high, self.at, self.longest = -1, time.monotonic(), 0.0

    def look(self):
        step, now = self.way.step(), time.monotonic()
        self.longest = max(self.longest, now - self.at)
        if step > self.high:
            self.high, self.at = step, now
        time.sleep(LOOK)

    def until(self, what, asked, seconds=LONG):
        end = time.monotonic() + seconds
        while not asked():
            if time.monotonic() > end or self.way.has_ended():
                raise AssertionError(f"no {what} within {seconds} s, at step {self.high}\n{self.way.told()[-6000:]}")
            self.look()

    def trains(self, steps):
        """Waits until the job is that many steps beyond its furthest one."""
        goal = max(self.high, 0) + steps
        self.until(f"step {goal}", lambda: self.high >= goal)

    def begin(self):
        """Measures from here on."""
        self.at, self.longest = time.monotonic(), 0.0
