"""A real Prometheus server finds the tasks of a job, scrapes them, and answers queries about them,
each panel of configs/grafana/dtf.json included; promtool reports no problem in the pages.
Usage: prometheus_test.py BUILD_FOLDER

Where there is no Prometheus, Debian's package is unpacked in the build folder: nothing is
installed.
"""
import glob
import json
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

PATIENCE = 60
JOB = """job: watched
run_dir: {folder}/run
cluster: {{ps: [localhost:auto, localhost:auto], worker: [localhost:auto, localhost:auto]}}
metrics: {{port: auto}}
train:
  model: {{input: {{shape: [28, 28, 1]}}, layers: [flatten: , dense: {{units: 10}}], loss: sparse_categorical_crossentropy}}
  steps: 100000000
"""
TASKS = {"ps/0", "ps/1", "worker/0", "worker/1"}


def program(build, name):
    """The path of `name`, unpacked if need be."""
    if shutil.which(name):
        return shutil.which(name)
    unpacked = build / "prometheus"
    if not (unpacked / "usr/bin" / name).exists():
        unpacked.mkdir(exist_ok=True)
        subprocess.run(["apt-get", "download", "-q", "prometheus"], cwd=unpacked, check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        subprocess.run(["dpkg", "-x", glob.glob(str(unpacked / "*.deb"))[0], unpacked], check=True)
    return str(unpacked / "usr/bin" / name)


def await_true(what, ask):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        answer = ask()
        if answer:
            return answer
        time.sleep(0.1)
    sys.exit(f"waited {PATIENCE} s in vain for {what}")


def targets(launcher, cluster):
    """Where the tasks answer, once all are there."""
    said = subprocess.run([launcher, "status", cluster, "--json"], capture_output=True, text=True).stdout
    tasks = json.loads(said or "{}").get("tasks", [])
    found = {task["name"]: (task["answer"] or {}).get("metrics") for task in tasks}
    return found if set(found) == TASKS and all(found.values()) else None


def panels():
    """[(title, expression)] of the dashboard, for the job of this test."""
    dashboard = json.loads((pathlib.Path(__file__).parents[2] / "configs/grafana/dtf.json").read_text())
    return [(panel["title"], target["expr"].replace("$job", "watched").replace("$__rate_interval", "10s"))
            for panel in dashboard["panels"] for target in panel["targets"]]


def query(server, expression):
    """{task: value} of an expression; empty while the server can't say."""
    try:
        with urllib.request.urlopen(f"{server}/api/v1/query?query={urllib.parse.quote(expression)}", timeout=10) as answer:
            result = json.load(answer)["data"]["result"]
    except OSError:
        return {}
    return {each["metric"].get("task", ""): float(each["value"][1]) for each in result}


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    launcher = str(build / "launcher/dtf-launch")
    prometheus, promtool = program(build, "prometheus"), program(build, "promtool")
    with tempfile.TemporaryDirectory() as name, socket.socket() as reserved:
        folder = pathlib.Path(name)
        cluster = folder / "job.yaml"
        cluster.write_text(JOB.format(folder=folder))
        job = subprocess.Popen([launcher, cluster], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        server_process = None
        try:
            found = await_true("the tasks", lambda: targets(launcher, str(cluster)))
            for task, address in found.items():
                page = urllib.request.urlopen(f"http://{address}/metrics", timeout=10).read()
                checked = subprocess.run([promtool, "check", "metrics"], input=page, capture_output=True)
                assert checked.returncode == 0 and not checked.stderr, f"{task}: {checked.stderr.decode()}"
            (folder / "prometheus.yml").write_text(json.dumps({
                "global": {"scrape_interval": "1s"},
                "scrape_configs": [{"job_name": "dtf", "static_configs": [{"targets": sorted(found.values())}]}]}))
            reserved.bind(("127.0.0.1", 0))
            port = reserved.getsockname()[1]
            reserved.close()
            server_process = subprocess.Popen(
                [prometheus, f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
                 f"--web.listen-address=127.0.0.1:{port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            server = f"http://127.0.0.1:{port}"
            await_true("four targets that are up", lambda: query(server, 'sum(up{job="dtf"})').get("") == 4)
            await_true("four that are ready", lambda: set(
                query(server, 'dtf_task_ready{dtf_job="watched"} == 1')) == TASKS)
            await_true("updates a second", lambda: set(
                query(server, 'rate(dtf_gradients_total{outcome="applied"}[10s]) > 0')) == {"ps/0", "ps/1"})
            percentile = "histogram_quantile(0.99, rate(dtf_step_seconds_bucket[10s])) > 0"
            await_true("the time of a step", lambda: set(query(server, percentile)) == {"worker/0", "worker/1"})
            slow = query(server, percentile)
            for title, expression in panels():
                await_true(f"the panel '{title}', {expression}", lambda: query(server, expression))
        finally:
            for process in (server_process, job):
                if process is not None:
                    process.terminate()
                    process.wait(PATIENCE)
    print("Prometheus has scraped 4 tasks, and", len(panels()), "expressions have an answer; 99 % of the steps took at most",
          ", ".join(f"{1000 * value:.2f} ms ({task})" for task, value in sorted(slow.items())))


main()
