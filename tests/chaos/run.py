"""One run of a job under dtf-launch with faults, and its outcome."""
import dataclasses
import json
import os
import pathlib
import queue
import random
import re
import signal
import subprocess
import threading
import time


@dataclasses.dataclass
class Injury:
    """A fault that was done to a task, and how long the job took to make its next step."""

    task: str
    step: int
    since: float  # the kill, or the end of the freeze
    frozen: bool = False
    back: bool = False  # the task's next process is ready, or it was never gone
    seconds: float | None = None
    started: float | None = None  # its next process
    seconds_of_process: float | None = None  # from there to the job's next step


@dataclasses.dataclass
class Wanted:
    """A fault that comes with an event."""

    fault: object
    left: int
    passages: int = 0  # of the event
    due: float | None = None  # when it is due, after the event
    task: str | None = None  # of the event


@dataclasses.dataclass
class Slowed:
    """A task that runs for a share of the time, in turns, until it or the job ends."""

    share: float
    until: float  # the turn's end
    stands: bool = False

    PERIOD = 0.2  # seconds: far below a lease

    def turn(self, now):
        """The signal that begins the next turn."""
        self.stands = not self.stands
        self.until = now + self.PERIOD * (1 - self.share if self.stands else self.share)
        return signal.SIGSTOP if self.stands else signal.SIGCONT


@dataclasses.dataclass
class Outcome:
    ended: str = "not in time"  # done, failed...: as summary.json has it
    said: str = ""
    injuries: list = dataclasses.field(default_factory=list)
    restarts: dict = dataclasses.field(default_factory=dict)  # by task, in the last launch
    left_behind: int = 0  # processes that outlived the job
    lost: int | None = None  # updates; none: not known
    doubled: int | None = None
    went_back: list = dataclasses.field(default_factory=list)  # steps that each going back cost
    kept: float | None = None  # of the speed, while a task was slow
    steps: int = 0  # that a run of so many seconds has made
    checkpoint: pathlib.Path | None = None


MODEL, TABLES = """
    input: {shape: [28, 28, 1]}
    layers: [flatten: , dense: {units: 10, name: softmax}]
    loss: sparse_categorical_crossentropy""", """
    input: {shape: [4]}
    layers:
      - dense: {units: 8, activation: relu, name: numbers}
      - embedding: {categories: user, input_dim: 1000, output_dim: 8, combiner: sum, name: user}
      - embedding: {categories: item, input_dim: 500, output_dim: 8, combiner: sum, name: item}
      - concatenate: {with: [numbers, user]}
      - dense: {units: 1, name: click}
    loss: binary_crossentropy"""


def job_text(job, faults, folder):
    """A cluster file."""
    def task(name):
        points = ";".join(f"{f.point}=kill@{f.passage or 2}" for f in faults if f.point and f.is_on(name))
        env = f", env: {{DTF_FAILPOINTS: {json.dumps(points)}}}" if points else ""
        return f"{{address: 'localhost:auto'{env}}}"

    replication = f"{{mode: {job.mode}" + (f", replicas_to_aggregate: {job.aggregate}" if job.aggregate else "") + "}"
    form = "format: synthetic, problem: clicks" if job.hybrid else "format: digits"
    data = f"train: {{{form}, count: 600}}" + (f", eval: {{{form}, count: 100}}" if job.eval_steps else "")
    more = f"  eval: {{every_steps: {job.eval_steps}}}\n" if job.eval_steps else ""
    more += f"  summaries: {{every_steps: {job.summary_steps}}}\n" if job.summary_steps else ""
    every = f"every_steps: {job.checkpoint_steps}" if job.checkpoint_steps else "every_seconds: 3600"
    every += ", gather: true" if job.gather else ""
    more += "  placement: hybrid\n" if job.hybrid else ""
    keys = f"keys: {folder}/keys\n" if job.keys else ""
    ps = f"  ps: [{', '.join(task(f'ps/{i}') for i in range(job.ps))}]\n" if job.ps else ""
    return f"""job: chaos
run_dir: {folder}/run
cluster:
{ps}  worker: [{', '.join(task(f'worker/{i}') for i in range(job.workers))}]
{keys}timeouts: {json.dumps(job.timeouts)}
launch: {json.dumps(job.launch)}
durability: {json.dumps(job.durability)}
train:
  model:{TABLES if job.hybrid else MODEL}
  data: {{{data}, batch_size: 20, seed: 7}}
  optimizer: {{adam: {{learning_rate: 0.001}}}}
  replication: {replication}
  steps: {job.steps}
  report: {{every_steps: {job.report_steps}}}
  checkpoint: {{{every}}}
{more}"""


def speed_kept(steps, since):
    """Steps a second after `since`, over the rate before it; `steps`: rising (when, step) pairs."""
    before = [one for one in steps if one[0] <= since]
    after = [one for one in steps if one[0] > since]
    if len(before) < 2 or len(after) < 2:
        return None
    rates = [(last[1] - first[1]) / (last[0] - first[0]) for first, last in ((before[0], before[-1]), (after[0], after[-1]))]
    return rates[1] / rates[0]


def updates_amiss(job, applied, dead_workers):
    """How many updates are missing, and how many are too many, on the ps where it is worst; `applied`: by ps."""
    due = job.steps * (1 if job.mode == "async" else job.aggregate or job.workers)
    over = [count - due for count in applied]
    if job.mode == "async":
        # ps/0 counts the steps. A push is whole on each ps, not on all: each worker that dies may
        # leave one half done.
        over = [over[0], *(max(0, abs(count) - dead_workers) * (1 if count > 0 else -1) for count in over[1:])]
    return max(0, *(-count for count in over), 0), max(0, *over, 0)


class Run:
    """Owns the launcher, and kills the processes it leaves behind."""

    def __init__(self, launcher, scenario, folder, seed):
        self.scenario, self.folder = scenario, pathlib.Path(folder)
        self.random = random.Random(seed)
        self.file = self.folder / "job.yaml"
        self.file.write_text(job_text(scenario.job, scenario.faults, folder))
        self.launcher = launcher
        if scenario.job.keys:
            subprocess.run([launcher, "keys", "init", self.folder / "keys", "--cluster", self.file], check=True,
                           stdout=subprocess.DEVNULL)
        self.outcome = Outcome()
        self.pids, self.ready, self.step = {}, set(), 0
        self.frozen = {}  # task -> when it is to go on
        self.slowed = {}  # task -> Slowed
        self.steps, self.slow_since = [], None  # (when, step)
        self.begin = time.monotonic()
        self.due = self.schedule()
        self.on_event = [Wanted(fault, fault.times) for fault in scenario.faults if fault.event]
        self.steady = {fault: None for fault in scenario.faults if fault.every}  # -> when it is due
        self.stop_at = None

    def schedule(self):
        due = []
        for fault in self.scenario.faults:
            if fault.event or fault.point or fault.every:
                continue
            steps = self.scenario.job.steps
            for _ in range(fault.times):
                due.append((fault.step or self.random.randrange(steps // 50 + 1, steps * 9 // 10), fault))
        return sorted(due, key=lambda one: one[0])

    def go(self):
        self.begin = time.monotonic()
        while True:
            self.start()
            again = self.watch()
            self.process.wait()
            if not again:
                break
        self.outcome.left_behind += self.leftovers(kill=True)
        self.outcome.said += (self.folder / "stderr").read_text(errors="replace")
        self.read_result()
        return self.outcome

    def start(self):
        command = [self.launcher, str(self.scenario.job.file or self.file), "--json"]
        if self.scenario.job.file:
            command += ["--run-dir", f"{self.folder}/run", "--set",
                        f"train.report.every_steps={self.scenario.job.report_steps}"]
        for assignment in self.scenario.job.set:
            command += ["--set", assignment]
        with open(self.folder / "stderr", "ab") as errors:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True,
                                            env={**os.environ, "XDG_RUNTIME_DIR": str(self.folder), "XDG_STATE_HOME": str(self.folder)})
        self.pids.clear()
        self.ready.clear()
        self.events = queue.Queue()
        threading.Thread(target=self.read, args=(self.process.stdout, self.events), daemon=True).start()

    @staticmethod
    def read(pipe, events):
        for line in pipe:
            events.put((time.monotonic(), json.loads(line)))
        events.put((time.monotonic(), None))

    UNHURT_LIMITS = 5  # a busy machine delays a run, too

    def deadline(self):
        """Returns when the run counts as hung: the limit after its first injury, or several limits
        after its begin, without an injury.
        """
        limit = self.scenario.limit
        injuries = self.outcome.injuries
        return injuries[0].since + limit if injuries else self.begin + self.UNHURT_LIMITS * limit

    def watch(self):
        """Waits until the launcher has ended. True: the plan killed it, and the job must continue.
        """
        while True:
            now = time.monotonic()
            if now > self.deadline():
                self.process.kill()
                return False
            self.thaw(now)
            self.slow_down(now)
            self.hurt_steadily(now)
            self.hurt_behind_events(now)
            if self.stop_at is not None and now >= self.stop_at:
                self.stop_at = None
                self.steady.clear()
                self.outcome.steps = self.step
                self.process.send_signal(signal.SIGINT)
            try:
                when, event = self.events.get(timeout=0.01)
            except queue.Empty:
                self.injure_who_is_due()
                continue
            if event is None:
                break
            self.note(when, event)
            self.injure_who_is_due()
        killed = any(injury.task == "launcher" and injury.seconds is None for injury in self.outcome.injuries)
        if killed:
            self.wait_until_nobody_is_left()
        return killed

    def note(self, when, event):
        kind, task = event["event"], event.get("task")
        if kind == "started":
            self.pids[task] = event["pid"]
            for injury in self.open_injuries(task):
                injury.started = when
        elif kind == "ready":
            self.ready.add(task)
            for injury in self.open_injuries(task):
                injury.back = True
        elif kind == "ended":
            self.on_end(when, task, event["exit_code"])
        elif kind == "progress":
            self.step = event["step"]
            if self.scenario.seconds and not self.steps:
                self.stop_at = when + self.scenario.seconds
            self.on_step(when)
        elif kind == "summary":
            self.outcome.ended = event["outcome"]
            self.outcome.restarts = {task["name"]: task["restarts"] for task in event["tasks"]}
        for wanted in self.on_event:
            fault = wanted.fault
            is_of = fault.of in (None, task) and (not fault.last or event.get("step") == self.scenario.job.steps)
            if fault.event == kind and is_of and (task is None or fault.of or fault.is_on(task)):
                wanted.passages += 1
                if wanted.left > 0 and wanted.passages >= (fault.passage or 1):
                    wanted.due, wanted.task = when + self.random.uniform(*fault.after), None if fault.of else task
        self.hurt_behind_events(time.monotonic())

    def on_end(self, when, task, code):
        self.ready.discard(task)
        self.pids.pop(task, None)
        self.frozen.pop(task, None)
        self.slowed.pop(task, None)
        for injury in self.open_injuries(task):
            if injury.frozen:  # its lease had run out, and it was killed
                injury.since, injury.frozen, injury.back = when, False, False
        by_point = any(fault.point and fault.is_on(task) for fault in self.scenario.faults)
        if by_point and code == 128 + signal.SIGKILL:
            self.outcome.injuries.append(Injury(task, self.step, when))

    def open_injuries(self, task):
        return [i for i in self.outcome.injuries if i.task == task and i.seconds is None]

    def on_step(self, when):
        self.steps.append((when, self.step))
        for injury in self.outcome.injuries:
            is_needed = self.scenario.job.waits_for_all or injury.task.startswith("ps/") or not self.scenario.job.ps
            waits = is_needed and not injury.back
            if injury.seconds is None and not injury.frozen and not waits and when > injury.since:
                injury.seconds = when - injury.since
                if injury.started is not None:
                    injury.seconds_of_process = when - injury.started

    def injure_who_is_due(self):
        while self.due and self.step >= self.due[0][0] and self.injure(self.due[0][1]):
            self.due.pop(0)

    def hurt_behind_events(self, now):
        for wanted in self.on_event:
            if wanted.due is None or now < wanted.due:
                continue
            wanted.due = None
            wanted.left -= self.injure(wanted.fault, wanted.task)

    def hurt_steadily(self, now):
        """Every so many seconds, from the first step on."""
        for fault, due in self.steady.items():
            if not self.steps:
                continue
            if due is None:
                self.steady[fault] = now + fault.every
            elif now >= due and self.injure(fault):
                self.steady[fault] = due + fault.every

    def injure(self, fault, task=None):
        """Returns False if there is no process to hurt yet."""
        if not fault.others:
            return self.injure_one(fault, task)
        alone = dataclasses.replace(fault, others=())
        hurt = [self.injure_one(dataclasses.replace(alone, who=who)) for who in (fault.who, *fault.others)]
        return any(hurt)

    def injure_one(self, fault, task=None):
        now = time.monotonic()
        if fault.who == "launcher":
            self.outcome.injuries.append(Injury("launcher", self.step, now))
            self.process.kill()
            return True
        there = self.pids if fault.event else self.ready
        hurt = self.frozen.keys() | self.slowed.keys()
        who = [t for t in sorted(there) if fault.is_on(t) and t not in hurt and task in (None, t)]
        if not who:
            return False
        task = self.random.choice(who)
        if fault.how == "slow":
            self.slowed[task] = Slowed(fault.share, now)
            self.slow_since = now
            self.outcome.injuries.append(Injury(task, self.step, now, back=True))
            return True
        stops = fault.how == "stop"
        try:
            os.kill(self.pids[task], signal.SIGSTOP if stops else signal.SIGKILL)
        except ProcessLookupError:
            return False
        if stops:
            self.frozen[task] = now + self.random.uniform(*fault.seconds)
        else:
            self.ready.discard(task)
        self.outcome.injuries.append(Injury(task, self.step, now, frozen=stops, back=False))
        return True

    def thaw(self, now):
        for task in [t for t, until in self.frozen.items() if now >= until]:
            del self.frozen[task]
            try:
                os.kill(self.pids[task], signal.SIGCONT)
            except (ProcessLookupError, KeyError):
                continue
            for injury in self.open_injuries(task):
                injury.since, injury.frozen, injury.back = now, False, True

    def slow_down(self, now):
        for task, slowed in list(self.slowed.items()):
            if now < slowed.until:
                continue
            try:
                os.kill(self.pids[task], slowed.turn(now))
            except (ProcessLookupError, KeyError):
                del self.slowed[task]

    # ---- afterwards

    def leftovers(self, kill=False):
        """How many processes of the job there are, the launcher aside."""
        count = 0
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) in (os.getpid(), self.process.pid):
                continue
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if any(str(self.folder).encode() in word for word in words):
                count += 1
                if kill:
                    os.kill(int(entry.name), signal.SIGKILL)
        return count

    def wait_until_nobody_is_left(self):
        killed = next(i for i in self.outcome.injuries if i.task == "launcher" and i.seconds is None)
        end = time.monotonic() + 10  # the lease
        while time.monotonic() < end and self.leftovers():
            time.sleep(0.01)
        self.outcome.left_behind += self.leftovers(kill=True)
        killed.seconds = time.monotonic() - killed.since

    def read_result(self):
        if self.slow_since is not None:
            self.outcome.kept = speed_kept(self.steps, self.slow_since)
        run = self.folder / "run"
        checkpoints = sorted((run / "checkpoints").glob("step-*"), key=lambda p: int(p.name.split("-")[1]))
        self.outcome.checkpoint = checkpoints[-1] if checkpoints else None
        for log in (run / "logs").glob("worker-0.*.log"):
            found = re.findall(r"event=went_back .*\bsteps_lost=(\d+)", log.read_text(errors="replace"))
            self.outcome.went_back += map(int, found)
        job = self.scenario.job
        if self.outcome.ended != "done" or not self.scenario.is_counted:
            return
        applied = [self.applied(job, self.last_log(run / "logs", f"ps-{index}")) for index in range(job.ps)]
        if None not in applied:
            dead_workers = sum(injury.task.startswith("worker/") for injury in self.outcome.injuries)
            self.outcome.lost, self.outcome.doubled = updates_amiss(job, applied, dead_workers)

    @staticmethod
    def last_log(folder, task):
        """Returns the log of the task's last process."""
        return max(folder.glob(f"{task}.*.log"), key=lambda path: int(path.name.split(".")[1]), default=None)

    @staticmethod
    def applied(job, log):
        """Returns the updates in the parameters of an async ps, over all its processes."""
        field = "global_step" if job.mode == "async" else "gradients_applied"
        found = log and re.search(rf"event=job_finished .*\b{field}=(\d+)", log.read_text(errors="replace"))
        return int(found.group(1)) if found else None
