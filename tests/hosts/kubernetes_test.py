#!/usr/bin/env python3
"""The manifests of configs/kubernetes fit each other, the cluster file and Kubernetes' schemas.
Without a kubelet, each pod runs in a container as its manifest describes it: command, user,
volumes, name, keys and probes.

Usage: kubernetes_test.py BUILD_FOLDER [CASE...]     exit code 77: this machine can't run such
                                                     containers; the last line gives the reason
"""
import json
import os
import pathlib
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

import yaml

import host as hosts

MANIFESTS = pathlib.Path(__file__).resolve().parents[2] / "configs/kubernetes"
SOON, LONG = 30, 90  # seconds
USER = 10001
STEPS = 20000
OLDEST, NEWEST = "1.29", "1.37"  # of the schemas
VALIDATE = """import json, sys, kubernetes_validate
for each in json.load(sys.stdin):
    for version in sys.argv[1:]:
        kubernetes_validate.validate(each, version, strict=True)
"""


def read(name):
    return yaml.safe_load((MANIFESTS / name).read_text())


def objects():
    """All that the kustomization names, by kind and name."""
    found = [read(name) for name in read("kustomization.yaml")["resources"]]
    return {(each["kind"], each["metadata"]["name"]): each for each in found}


def jobs():
    return [each for (kind, _), each in objects().items() if kind == "Job"]


class Pod:
    """Index `index` of a Job in a container of systemd-nspawn: the init container, then the other. Owns its process.

    Files: `volumes`, a folder that outlives it for a PersistentVolumeClaim, and is new for each pod for an emptyDir.
    """

    def __init__(self, bench, job, index):
        self.job, self.index = job, index
        self.spec = job["spec"]["template"]["spec"]
        self.name = f"{job['metadata']['name']}-{index}"
        self.folder = pathlib.Path(tempfile.mkdtemp(dir=bench.folder, prefix=self.name))
        self.bench = bench
        for each in (*self.spec["initContainers"], *self.spec["containers"]):
            self.process = self.start(each)
            if each in self.spec["initContainers"]:
                assert self.process.wait(SOON) == 0, self.said()

    def start(self, container):
        assert container["securityContext"]["readOnlyRootFilesystem"], container["name"]
        binds = []
        for mount in container["volumeMounts"]:
            volume = next(each for each in self.spec["volumes"] if each["name"] == mount["name"])
            word = "--bind-ro" if mount.get("readOnly") else "--bind"
            binds.append(f"{word}={self.bench.volume(self, volume)}:{mount['mountPath']}")
        command = container["command"] + container["args"]
        return subprocess.Popen(
            ["systemd-nspawn", "--quiet", f"--directory={self.bench.root}", "--read-only", f"--machine={self.name}", "--register=no",
             "--keep-unit", "--resolv-conf=off", "--timezone=off", f"--user={USER}", "--bind-ro=/usr", f"--bind-ro={self.bench.local}:/usr/local", *binds,
             f"--setenv=JOB_COMPLETION_INDEX={self.index}", "--chdir=/var/lib/dtf", "--", "env", "--unset=NOTIFY_SOCKET", *command],
            stdin=subprocess.DEVNULL, stdout=open(self.folder / "said", "a"), stderr=subprocess.STDOUT, start_new_session=True)

    def said(self):
        return f"{self.name}:\n" + "\n".join((self.folder / "said").read_text(errors="replace").splitlines()[-15:])

    def signal(self, number):
        """To process 1 of the container, which is nspawn's only child, if it is there."""
        for child in pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split():
            os.kill(int(child), number)

    def probe(self, name):
        """Probes like the kubelet, without verifying the certificate: whether the status is 200."""
        container = self.spec["containers"][0]
        asked = container[name]["httpGet"]
        port = next(each["containerPort"] for each in container["ports"] if each["name"] == asked["port"])
        unverified = ssl._create_unverified_context() if asked["scheme"] == "HTTPS" else None
        try:
            with urllib.request.urlopen(f"{asked['scheme'].lower()}://{self.bench.addresses[self.name]}:{port}{asked['path']}",
                                        timeout=container[name].get("timeoutSeconds", 1), context=unverified) as answer:
                return answer.status == 200
        except (urllib.error.URLError, OSError):
            return False

    def end(self):
        """A container outlives an nspawn that is killed, so its process 1 is."""
        end = time.monotonic() + SOON
        while self.process.poll() is None:
            assert time.monotonic() < end, f"{self.name} doesn't end"
            self.signal(signal.SIGKILL)
            time.sleep(0.05)


class Bench:
    """The root file system of all containers, the names of the pods, the Secret, and the pods that run."""

    def __init__(self, build, folder):
        self.build, self.folder = build, folder
        self.local, self.root = folder / "local", folder / "root"
        (self.local / "bin").mkdir(parents=True)
        for program in ("daemons/psd/psd", "daemons/workerd/workerd", "launcher/dtf-launch"):
            shutil.copy(build / program, self.local / "bin")
        names = [f"{job['metadata']['name']}-{i}" for job in jobs() for i in range(job["spec"]["completions"])]
        self.addresses = {name: f"127.1.0.{number}" for number, name in enumerate(names, 1)}
        self.make_root()
        self.config = folder / "config"
        self.config.mkdir()
        self.pods = {}
        self.new_job()

    def make_root(self):
        """Makes an image's files, and /etc/hosts: it lists all pods, because there is no DNS."""
        for name in ("etc/dtf", "usr", "var/lib/dtf", "run", "tmp", "proc", "sys", "dev", "root", "keys", "secret"):
            (self.root / name).mkdir(parents=True)
        for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
            if pathlib.Path("/usr", name).is_dir():
                (self.root / name).symlink_to(f"usr/{name}")
        space = read("kustomization.yaml")["namespace"]
        lines = "".join(f"{address} {name}.{job['spec']['template']['spec']['subdomain']}.{space}.svc.cluster.local {name}\n"
                        for job in jobs() for name, address in self.addresses.items() if name.startswith(job["metadata"]["name"]))
        (self.root / "etc/hosts").write_text("127.0.0.1 localhost\n" + lines)
        (self.root / "etc/nsswitch.conf").write_text("passwd: files\ngroup: files\nhosts: files\n")
        (self.root / "etc/passwd").write_text(f"root:x:0:0:root:/root:/bin/sh\ndtf:x:{USER}:{USER}::/var/lib/dtf:/bin/sh\n")
        (self.root / "etc/group").write_text(f"root:x:0:\ndtf:x:{USER}:\n")
        shutil.copy("/usr/lib/os-release", self.root / "etc/os-release")

    def new_job(self, change=lambda text: text):
        """The ConfigMap with the text that `change` makes of it, keys as README.md has them, and an empty claim."""
        text = (MANIFESTS / "cluster.yaml").read_text()
        (self.config / "cluster.yaml").write_text(change(text))
        for name in ("secret", "claim"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        subprocess.run([self.build / "launcher/dtf-launch", "keys", "init", self.folder / "secret", "--cluster", MANIFESTS / "cluster.yaml"],
                       check=True, capture_output=True, timeout=SOON)
        (self.folder / "secret/ca-key.pem").unlink()
        for key in (self.folder / "secret").iterdir():  # as the kubelet writes a Secret for fsGroup
            os.chown(key, 0, USER)
            key.chmod(0o440)
        os.chown(self.folder / "secret", 0, USER)
        (self.folder / "secret").chmod(0o750)

    def volume(self, pod, volume):
        if "configMap" in volume:
            return self.config
        if "secret" in volume:
            return self.folder / "secret"
        kept = self.folder / "claim" if "persistentVolumeClaim" in volume else pod.folder / volume["name"]
        kept.mkdir(exist_ok=True)
        os.chown(kept, 0, USER)  # fsGroup
        kept.chmod(0o2770)
        return kept

    def start(self, job, index):
        pod = Pod(self, job, index)
        self.pods[pod.name] = pod
        return pod

    def start_all(self):
        for job in jobs():
            for index in range(job["spec"]["completions"]):
                self.start(job, index)

    def until(self, what, asked, seconds=SOON):
        end = time.monotonic() + seconds
        while not asked():
            assert time.monotonic() < end, f"no {what} within {seconds} s\n" + "\n".join(pod.said() for pod in self.pods.values())
            time.sleep(0.05)

    def expect_end(self, code=0):
        self.until("end of all pods", lambda: all(pod.process.poll() is not None for pod in self.pods.values()), LONG)
        for pod in self.pods.values():
            assert pod.process.returncode == code, f"{pod.process.returncode}\n{pod.said()}"

    def summary(self):
        return json.loads(next((self.folder / "claim").glob("runs/*/summary.json")).read_text())

    def end_all(self):
        for pod in self.pods.values():
            pod.end()
        self.pods.clear()


def the_files_fit_each_other(_bench):
    files = {file.name for file in MANIFESTS.glob("*.yaml")} - {"kustomization.yaml", "cluster.yaml"}
    assert files == set(read("kustomization.yaml")["resources"])
    cluster, space = read("cluster.yaml"), read("kustomization.yaml")["namespace"]
    all_objects = objects()
    assert ("Namespace", space) in all_objects
    ports = {port["name"]: port["port"] for port in all_objects["Service", "dtf"]["spec"]["ports"]}
    assert ports["metrics"] == cluster["metrics"]["port"]
    pods = {}
    for job in jobs():
        spec, pod = job["spec"], job["spec"]["template"]["spec"]
        assert spec["completions"] == spec["parallelism"]
        assert pod["terminationGracePeriodSeconds"] > cluster["timeouts"]["stop_seconds"]
        assert {port["name"]: port["containerPort"] for port in pod["containers"][0]["ports"]} == ports
        label = all_objects["Service", "dtf"]["spec"]["selector"].items()
        assert label <= spec["template"]["metadata"]["labels"].items()
        pods[job["metadata"]["name"]] = [f"{job['metadata']['name']}-{i}.{pod['subdomain']}.{space}.svc.cluster.local:{ports['tasks']}"
                                         for i in range(spec["completions"])]
        for volume in pod["volumes"]:
            claim = volume.get("persistentVolumeClaim")
            assert not claim or ("PersistentVolumeClaim", claim["claimName"]) in all_objects
    assert cluster["cluster"]["ps"] == pods["dtf-ps"]
    assert [task["address"] for task in cluster["cluster"]["worker"]] == pods["dtf-chief"] + pods["dtf-worker"]
    assert all_objects["PodDisruptionBudget", "dtf"]["spec"]["minAvailable"] == sum(map(len, pods.values()))


def the_overlay_without_ps_fits_the_others(_bench):
    overlay = yaml.safe_load((MANIFESTS.parent / "kubernetes-without-ps/kustomization.yaml").read_text())
    cluster = yaml.safe_load((MANIFESTS.parent / "kubernetes-without-ps/cluster.yaml").read_text())
    base = read("cluster.yaml")
    assert overlay["namespace"] == read("kustomization.yaml")["namespace"]
    assert "ps" not in cluster["cluster"] and cluster["cluster"]["worker"] == base["cluster"]["worker"]
    for key in ("keys", "metrics", "launch", "timeouts"):
        assert cluster[key] == base[key], key
    assert cluster["train"]["checkpoint"]["gather"], "the chief's volume is the only one"
    patches = {(each["kind"], each["metadata"]["name"]): each
               for each in (yaml.safe_load(patch["patch"]) for patch in overlay["patches"])}
    assert set(patches) <= set(objects()), "each patch has its object"
    assert patches["Job", "dtf-ps"]["$patch"] == "delete"
    assert patches["PodDisruptionBudget", "dtf"]["spec"]["minAvailable"] == len(cluster["cluster"]["worker"])


def kubernetes_schemas_take_them(bench):
    """Those of every version from OLDEST on, unknown keys refused."""
    versions = [f"1.{minor}.0" for minor in range(int(OLDEST.split(".")[1]), int(NEWEST.split(".")[1]) + 1)]
    done = subprocess.run([python_with_schemas(bench.build), "-c", VALIDATE, *versions], input=json.dumps(list(objects().values())),
                          capture_output=True, text=True, timeout=LONG, check=False)
    assert done.returncode == 0, done.stderr


def the_pods_train_and_one_that_is_lost_is_replaced(bench):
    bench.new_job(lambda text: text.replace("steps: 20000", f"steps: {STEPS}"))
    bench.start_all()
    for probe in ("startupProbe", "readinessProbe"):
        bench.until(probe, lambda probe=probe: all(pod.probe(probe) for pod in bench.pods.values()), LONG)
    lost = bench.pods["dtf-worker-0"]
    lost.signal(signal.SIGKILL)
    assert lost.process.wait(SOON) != 0, lost.said()
    another = bench.start(lost.job, 0)
    bench.until("readiness of another pod", lambda: another.process.poll() == 0 or another.probe("readinessProbe"), LONG)
    assert all(pod.process.poll() is None or pod.process.poll() == 0 for pod in bench.pods.values())
    bench.expect_end()
    assert bench.summary()["outcome"] == "done" and bench.summary()["global_step"] == STEPS, bench.summary()


def pods_that_are_told_to_end_save_and_go_on_when_applied_again(bench):
    bench.new_job(lambda text: text.replace("steps: 20000", "steps: 100000000"))
    bench.start_all()
    for again in (False, True):
        bench.until("readiness", lambda: all(pod.probe("readinessProbe") for pod in bench.pods.values()), LONG)
        assert all(pod.probe("livenessProbe") for pod in bench.pods.values())
        for pod in list(bench.pods.values())[:1 if again else None]:
            pod.signal(signal.SIGTERM)
        bench.expect_end(75)
        assert bench.summary()["outcome"] == "stopped", bench.summary()
        if not again:
            first = bench.summary()["global_step"]
            bench.end_all()
            bench.start_all()
    assert bench.summary()["global_step"] > first, (first, bench.summary())


def what_was_paused_is_made_anew_and_does_not_count(_bench):
    assert read("cluster.yaml")["launch"]["on_sigterm"] == "pause"
    for job in jobs():
        [main] = job["spec"]["template"]["spec"]["containers"]
        rules = [rule for rule in job["spec"]["podFailurePolicy"]["rules"] if 75 in rule.get("onExitCodes", {}).get("values", [])]
        assert [(rule["action"], rule["onExitCodes"]["containerName"]) for rule in rules] == [("Ignore", main["name"])], rules


def a_mistake_ends_a_job_for_good(bench):
    bench.new_job(lambda text: text.replace("steps:", "stepz:"))
    bench.start_all()
    bench.expect_end(78)
    for job in jobs():
        rules = job["spec"]["podFailurePolicy"]["rules"]
        assert any(rule["action"] == "FailJob" and 78 in rule["onExitCodes"]["values"] for rule in rules), rules


CASES = [the_files_fit_each_other, kubernetes_schemas_take_them, the_pods_train_and_one_that_is_lost_is_replaced,
         pods_that_are_told_to_end_save_and_go_on_when_applied_again, what_was_paused_is_made_anew_and_does_not_count, a_mistake_ends_a_job_for_good]


def python_with_schemas(build):
    """Returns a Python with Kubernetes' schemas: DTF_PYTHON, the one that scripts/python-env.sh
    made in the build folder, or this one; else None.
    """
    for python in (os.environ.get("DTF_PYTHON"), build / "python-env/bin/python", sys.executable):
        if python and shutil.which(python) and subprocess.run(
                [python, "-c", "import kubernetes_validate"], capture_output=True, timeout=LONG, check=False).returncode == 0:
            return python
    return None


def cases(build):
    if python_with_schemas(build):
        return CASES
    name = f"Kubernetes.{kubernetes_schemas_take_them.__name__}"
    print(f"[ RUN      ] {name}\nSkipped: no Python here has kubernetes-validate: scripts/python-env.sh {build}/python-env\n[  SKIPPED ] {name} (0 ms)")
    return [case for case in CASES if case is not kubernetes_schemas_take_them]


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    if os.geteuid() != 0 or hosts.missing_tools():
        print("SKIPPED: only root runs the pods of configs/kubernetes, with systemd-nspawn")
        return 77
    try:
        hosts.in_own_network()
    except hosts.NoHost as reason:
        print(f"SKIPPED: the pods of configs/kubernetes can have no network here: {reason}")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        bench = Bench(build, pathlib.Path(folder))
        try:
            return 1 if hosts.run_cases("Kubernetes", cases(build), sys.argv[2:], bench, bench.end_all) else 0
        finally:
            bench.end_all()


if __name__ == "__main__":
    sys.exit(main())
