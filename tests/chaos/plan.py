"""A plan file, read and checked: the faults, their moments, and the jobs. The format is in
chaos.py's --help.
"""
import dataclasses
import pathlib

import yaml

ROLES = ("worker", "ps", "chief", "task", "launcher")


class PlanError(Exception):
    """Names the wrong place in the plan, and the remedy."""


@dataclasses.dataclass(frozen=True)
class Job:
    file: str | None = None  # the user's own; else a small job on drawn digits, with the keys below
    ps: int = 2
    workers: int = 2
    mode: str = "sync"
    hybrid: bool = False  # the ps have tables, the workers the other variables
    aggregate: int | None = None  # gradients a step takes; fewer than workers: the others are backups
    steps: int = 10000
    report_steps: int = 20  # between two progress events, which measure recovery
    checkpoint_steps: int | None = None  # none: only the last
    eval_steps: int | None = None  # none: nothing is evaluated
    summary_steps: int | None = None  # none: no summaries
    durability: str | dict = "checkpoint"  # as in a cluster file
    keys: bool = False  # TLS between the tasks
    gather: bool = False  # the chief fetches the shards of checkpoints from the ps
    timeouts: dict = dataclasses.field(default_factory=dict)
    launch: dict = dataclasses.field(default_factory=dict)
    set: list = dataclasses.field(default_factory=list)

    @property
    def waits_for_all(self):
        """Whether a step can't be made without each of the workers."""
        return self.mode == "sync" and (self.aggregate or self.workers) == self.workers


@dataclasses.dataclass(frozen=True)
class Fault:
    who: str
    others: tuple = ()  # that are hurt with it, at once
    how: str = "kill"  # or "stop", "slow"
    seconds: tuple = (1.0, 1.0)  # stop: drawn between
    share: float = 1.0  # slow: of the time, in which it runs from then on
    times: int = 1  # of an event at most, else at least
    step: int | None = None  # when it fires; none of the three: at steps that are drawn
    event: str | None = None
    point: str | None = None
    passage: int | None = None  # of `point`, in each process: the second; of `event`: from the first on
    last: bool = False  # of `event`: the one that is of the job's last step
    of: str | None = None  # of `event`: of that task alone
    after: tuple = (0.0, 0.0)  # of `event`: seconds from it, drawn between
    every: float | None = None  # seconds: for as long as the run lasts

    def is_on(self, task):
        return task == self.task or self.who == "task" or (self.who in ("worker", "ps") and task.startswith(self.who + "/"))

    @property
    def is_of_several(self):
        return bool(self.others)

    @property
    def task(self):
        return "worker/0" if self.who == "chief" else self.who


@dataclasses.dataclass(frozen=True)
class Scenario:
    rows: str
    name: str
    job: Job
    faults: tuple
    runs: int = 1
    ends: str = "done"  # or "failed"
    says: str = ""  # text that dtf-launch must print
    equal: bool = False  # compare the files of the last checkpoint with an undisturbed run's
    within: float | None = None  # seconds from an injury to the job's next step, at most
    within_of_start: float | None = None  # the same from the start of the process that takes the lost one's place
    steps_lost: int | None = None  # at most, that each going back may cost
    keeps: float | None = None  # least share of its speed while a task is slow
    limit: float = 120  # seconds a run may take from its first injury on
    seconds: float | None = None  # length of a run: then the job gets a stop request
    goodput: float | None = None  # least share of an undisturbed run's steps; 0: only printed

    @property
    def planned(self):
        """Returns how many injuries a run must have. One of events, because their number is
        unknown; none behind the end, because the task may have left.
        """
        if self.is_of_the_end:
            return 0
        sure = [f.times for f in self.faults if f.event is None and f.every is None]
        return sum(sure) if sure else min(1, len(self.faults))

    @property
    def is_of_the_end(self):
        """Whether a task may be hurt behind the last step: then no step comes after it."""
        return any(f.last or f.of for f in self.faults)

    @property
    def is_counted(self):
        """Whether the ps' logs give the number of gradients they applied. In sync mode a ps that is
        started again, or goes back, counts from 0. After the result a ps may end before it logs
        the number.
        """
        others = any(f.who in ("launcher", "task") or f.is_of_several or (f.who.startswith("ps") and self.job.mode == "sync")
                     for f in self.faults)
        return self.ends == "done" and self.job.ps > 0 and not self.job.file and not others and not self.is_of_the_end


@dataclasses.dataclass(frozen=True)
class Plan:
    seed: int
    scenarios: tuple


def read_plan(path):
    try:
        content = yaml.safe_load(pathlib.Path(path).read_text())
    except OSError as error:
        raise PlanError(f"{path}: cannot read it: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise PlanError(f"{path}: no YAML: {error}") from error
    plan = take(content, {"seed", "scenarios"}, str(path))
    scenarios = plan.get("scenarios") or []
    if not isinstance(scenarios, list) or not scenarios:
        raise PlanError(f"{path}: no scenarios: a list under 'scenarios', see scripts/chaos.sh --help")
    return Plan(plan.get("seed", 1), tuple(read_scenario(s, f"{path}: scenarios[{i}]") for i, s in enumerate(scenarios)))


def take(content, keys, where):
    """`content`, a map with no other keys than these."""
    if not isinstance(content, dict):
        raise PlanError(f"{where}: expected a map, got {content!r}")
    unknown = sorted(set(map(str, content)) - set(keys))
    if unknown:
        raise PlanError(f"{where}: unknown key {unknown[0]!r}; known are: {', '.join(sorted(keys))}")
    return content


def fields(kind):
    return {field.name for field in dataclasses.fields(kind)}


def read_scenario(content, where):
    content = dict(take(content, fields(Scenario), where))
    for key in ("rows", "name"):
        if not content.get(key):
            raise PlanError(f"{where}: '{key}' is missing")
    where = f"{where} ({content['name']})"
    content["job"] = Job(**take(content.get("job", {}), fields(Job), f"{where}: job"))
    faults = content.get("faults", [])
    if not isinstance(faults, list):
        raise PlanError(f"{where}: faults: expected a list, got {faults!r}")
    content["faults"] = tuple(read_fault(f, content["job"], f"{where}: faults[{i}]") for i, f in enumerate(faults))
    if content.get("ends", "done") not in ("done", "failed", "stopped"):
        raise PlanError(f"{where}: ends: {content['ends']!r} is none of 'done', 'failed', 'stopped'")
    return Scenario(**content)


def read_task(who, where):
    role, _, index = who.partition("/")
    if role not in ROLES or (index and (role not in ("worker", "ps") or not index.isdigit())):
        raise PlanError(f"{where}: who: {who!r} is no task: worker, worker/1, ps, ps/0, chief, task (any), launcher, all, or a list")


def read_fault(content, job, where):
    content = dict(take(content, {"who", "how", "when", "times"}, where))
    whom = content.get("who", "")
    whom = [str(one) for one in whom] if isinstance(whom, list) and whom else [str(whom)]
    if whom == ["all"]:
        whom = [f"ps/{i}" for i in range(job.ps)] + [f"worker/{i}" for i in range(job.workers)]
    for one in whom:
        read_task(one, where)
    who = whom[0]
    role = who.partition("/")[0]
    how = content.get("how", "kill")
    seconds, share = (1.0, 1.0), 1.0
    if isinstance(how, dict) and "slow" in how:
        share = take(how, {"slow"}, f"{where}: how")["slow"]
        how = "slow"
    elif isinstance(how, dict):
        seconds = take(how, {"stop"}, f"{where}: how")["stop"]
        seconds = tuple(seconds) if isinstance(seconds, list) else (seconds, seconds)
        how = "stop"
    if how not in ("kill", "stop", "slow") or len(seconds) != 2 or not 0 < seconds[0] <= seconds[1] or not 0 < share <= 1:
        raise PlanError(f"{where}: how: 'kill', {{stop: SECONDS}}, {{stop: [FROM, TO]}} or {{slow: SHARE}}, not {content['how']!r}")
    when = dict(take(content.get("when", {}), {"step", "event", "point", "passage", "last", "of", "after", "every"}, f"{where}: when"))
    if "after" in when:
        after = when["after"]
        when["after"] = tuple(after) if isinstance(after, list) else (after, after)
    if len(whom) > 1 and "event" not in when and "step" not in when:
        raise PlanError(f"{where}: when: several tasks are hurt at once at an event, or at a step")
    if "point" in when and (role == "launcher" or job.file or how != "kill"):
        raise PlanError(f"{where}: when: a point kills a task of a job without 'file'")
    return Fault(who=who, others=tuple(whom[1:]), how=how, seconds=seconds, share=share, times=content.get("times", 1), **when)
