#!/usr/bin/env python3
"""Breaks real jobs by plan and prints the cost: one line for each scenario, one table at the end.

Usage: scripts/chaos.sh [--quick | PLAN.yaml ...] [option...]
  (no plan)        tests/chaos/plans/full.yaml: 200 kills of workers, 100 of ps for each durability,
                   the chief at each named point; minutes
  --quick          tests/chaos/plans/quick.yaml: less than a minute
  --build FOLDER   where dtf-launch was built (default: build)
  --runs N         of each scenario, instead of the plan's
  --seed N         instead of the plan's: other moments, other victims
  --only TEXT      only the scenarios with it in their rows or name
  --keep           keeps the folders of all runs, not only of failed ones

Ends with 0 when every job ended as its scenario expects, with the same bits where the plan requires
them; every injury was followed by another step; no unhurt task was started again; no update was
lost or applied twice; and no process was left.

The columns of the table:
  p50 s, p99 s     from the kill, or from the end of a freeze, to the job's next step (launcher:
                   until all its tasks are gone; a slow task: from the moment it becomes slow)
  p99 s of start   from the start of the process that replaces the lost one, without dtf-launch's
                   pause before it
  steps lost       the most that one going back cost
  speed kept       the least of all runs

A plan is a YAML file:

  seed: 1                           # of victims and moments: the same plan does the same again
  scenarios:
    - rows: R1, R2                  # for the table: the promises that it tests
      name: workers killed
      runs: 20
      job: {ps: 2, workers: 4, mode: sync, steps: 20000}
      faults:
        - {who: worker, how: kill, times: 10}
      equal: true                   # the last checkpoint has the bytes of an undisturbed run's

  job      a small one on the digits that dtf draws: ps, workers, mode, aggregate (gradients a step
           takes: the other workers are backups), steps, checkpoint_steps, eval_steps,
           summary_steps, timeouts, launch and durability (as in a cluster file), keys: true (TLS),
           gather: true (the chief fetches the shards of checkpoints), report_steps (steps between
           two progress events, which measure recovery); or file: CLUSTER.yaml, your own.
           set: [KEY=VALUE, ...]
  faults   who: worker, ps, task (one of them, drawn), worker/1, chief, launcher (it is started
             again when all are gone); [chief, ps/0] or all: these at once, at an event or a step
           how: kill (SIGKILL); {stop: 3} or {stop: [0.5, 4]} (SIGSTOP, and SIGCONT so many seconds
             later, drawn); {slow: 0.1} (from then on it runs for a tenth of the time, in turns of
             milliseconds)
           when: nothing (at steps that are drawn); {step: 500};
             {event: started, passage: 2} (at each event of dtf-launch --json for that task, from
             the second one on: started, ready, checkpoint, ...; with `last: true` the event of the
             job's last step, with `of: worker/1` that task's; `after: [0, 0.02]`: so many seconds
             after it);
             {every: 5} (every so many seconds, for as long as the run lasts);
             {point: checkpoint.after_rename, passage: 2} (each of its processes kills itself there
             the second time; named points are compiled in with the build option `tests`:
             common/base/failpoint.cc lists them)
           times: how often in a run (default 1): of an event at most; a run of a point, or of
             steps, must have so many
  ends     done (default), failed or stopped; says: TEXT that dtf-launch must print
  within   most seconds from an injury to the job's next step (default: any); within_of_start: from
           the start of the next process of the task, without the pause before it
  steps_lost  most steps that each going back may cost (default: any)
  keeps    least share of its speed while a task is slow: steps a second beside those before
           (default: any)
  seconds  length of a run: then the job gets a stop request. goodput: least share of the steps of
           such a run without faults, which runs at the same time
  limit    seconds that a run may take from its first injury on (default 120); without an injury it may
           take five times as long
"""
import argparse
import collections
import concurrent.futures
import filecmp
import os
import pathlib
import shutil
import sys
import tempfile

try:
    import plan as plans
except ModuleNotFoundError as missing:
    if missing.name != "yaml":
        raise
    sys.exit("chaos: error: no PyYAML for this python3: scripts/install-deps.sh --tests, or apt install python3-yaml")
import run as runs

HERE = pathlib.Path(__file__).resolve().parent
COLUMNS = ("rows", "scenario", "runs", "as planned", "equal", "injuries", "p50 s", "p99 s", "p99 s of start", "steps lost", "lost", "doubled", "left",
           "speed kept", "goodput")


def percentile(values, share):
    """The smallest value that at least `share` of them do not exceed."""
    values = sorted(values)
    return values[max(0, -(-len(values) * share // 100) - 1)] if values else None


def same_files(ours, theirs):
    """Whether two checkpoints hold the same bytes; their manifests differ in their times."""
    if ours is None or theirs is None or ours.name != theirs.name:
        return False
    names = sorted(path.name for path in theirs.glob("*.safetensors"))
    return bool(names) and names == sorted(path.name for path in ours.glob("*.safetensors")) and all(
        filecmp.cmp(ours / name, theirs / name, shallow=False) for name in names)


class Tally:
    """The results of the runs of one scenario."""

    def __init__(self, scenario):
        self.scenario = scenario
        self.runs = self.as_planned = self.equal = self.left = 0
        self.seconds, self.unhealed = [], 0
        self.seconds_of_start = []
        self.steps_lost = self.lost = self.doubled = self.kept = self.goodput = None
        self.problems = []

    def add(self, outcome, reference, calm_steps=0):
        scenario = self.scenario
        self.runs += 1
        problems = []
        if outcome.ended != scenario.ends:
            problems.append(f"it ended '{outcome.ended}', not '{scenario.ends}'")
        if scenario.says not in outcome.said:
            problems.append(f"dtf-launch has not said: {scenario.says}")
        self.as_planned += not problems
        if scenario.equal:
            is_same = same_files(outcome.checkpoint, reference)
            self.equal += is_same
            if not is_same:
                problems.append("its last checkpoint is another than that of the run that nobody disturbed")
        self.seconds += [i.seconds for i in outcome.injuries if i.seconds is not None]
        self.seconds_of_start += [i.seconds_of_process for i in outcome.injuries if i.seconds_of_process is not None]
        unhealed = [i for i in outcome.injuries if i.seconds is None]
        # After the last step there is no next one.
        if scenario.ends == "done" and outcome.ended != "done" and not scenario.is_of_the_end:
            problems += [f"{i.task}, hurt after step {i.step}: no step came after it" for i in unhealed]
        if len(outcome.injuries) < scenario.planned:
            problems.append(f"{len(outcome.injuries)} were hurt of {scenario.planned} planned: the job is too short, or no "
                            "such point or event came")
        if scenario.within is not None:
            problems += [f"{i.task}, hurt after step {i.step}: {i.seconds:.2f} s to the next one, {scenario.within} planned"
                         for i in outcome.injuries if i.seconds is not None and i.seconds > scenario.within]
        if scenario.within_of_start is not None:
            problems += [f"{i.task}, hurt after step {i.step}: {i.seconds_of_process:.2f} s from its next start to a step, "
                         f"{scenario.within_of_start} planned" for i in outcome.injuries
                         if i.seconds_of_process is not None and i.seconds_of_process > scenario.within_of_start]
        if scenario.steps_lost is not None:
            problems += [f"going back cost {steps} steps, {scenario.steps_lost} planned" for steps in outcome.went_back
                         if steps > scenario.steps_lost]
        if scenario.keeps is not None and (outcome.kept is None or outcome.kept < scenario.keeps):
            kept = "an unknown part" if outcome.kept is None else f"{outcome.kept:.2f}"
            problems.append(f"{kept} of the speed was kept with a slow task, {scenario.keeps} planned")
        if outcome.kept is not None:
            self.kept = min(self.kept or outcome.kept, outcome.kept)
        if outcome.went_back:
            self.steps_lost = max(self.steps_lost or 0, *outcome.went_back)
        if scenario.is_counted and outcome.ended == "done" and None in (outcome.lost, outcome.doubled):
            problems.append("the logs of the ps don't tell how many gradients were applied")
        if scenario.goodput is not None:
            share = outcome.steps / calm_steps if calm_steps else 0.0
            self.goodput = min(self.goodput or share, share)
            if share < scenario.goodput:
                problems.append(f"{share:.2f} of the steps of a run that nobody disturbs, {scenario.goodput} planned")
        hurt = collections.Counter(i.task for i in outcome.injuries)
        problems += [f"{task} was started again {count} times, and hurt {hurt[task]} times"
                     for task, count in outcome.restarts.items() if count > hurt[task]]
        self.unhealed += len(unhealed)
        for name in ("lost", "doubled"):
            count = getattr(outcome, name)
            if count is not None:
                setattr(self, name, (getattr(self, name) or 0) + count)
                if count > 0:
                    problems.append(f"{count} updates {name}")
        self.left += outcome.left_behind
        if outcome.left_behind:
            problems.append(f"{outcome.left_behind} processes were left")
        self.problems += problems
        return problems

    def cells(self):
        def text(value):
            return "-" if value is None else f"{value:.2f}" if isinstance(value, float) else str(value)

        return (self.scenario.rows, self.scenario.name, text(self.runs), f"{self.as_planned}/{self.runs}",
                f"{self.equal}/{self.runs}" if self.scenario.equal else "-",
                text(len(self.seconds) + self.unhealed), text(percentile(self.seconds, 50)),
                text(percentile(self.seconds, 99)), text(percentile(self.seconds_of_start, 99)),
                text(self.steps_lost), text(self.lost), text(self.doubled), text(self.left),
                text(self.kept), text(self.goodput))


def table(tallies):
    rows = [COLUMNS, *(tally.cells() for tally in tallies)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(COLUMNS))]
    lines = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]])


class Laboratory:
    """Does the scenarios, one after the other, in a folder of its own."""

    def __init__(self, launcher, seed, keep):
        self.launcher, self.seed, self.keep = launcher, seed, keep
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="dtf-chaos-"))
        self.references = {}  # by job: the last checkpoint of a run that nobody disturbs

    def reference(self, job):
        key = repr(job)
        if key not in self.references:
            calm = plans.Scenario(rows="", name="calm", job=job, faults=())
            folder = self.folder / f"calm-{len(self.references)}"
            folder.mkdir()
            outcome = runs.Run(self.launcher, calm, folder, "calm").go()
            if outcome.ended != "done" or outcome.checkpoint is None:
                raise SystemExit(f"chaos: error: the job fails though nobody disturbs it; see {folder}\n{outcome.said}")
            self.references[key] = outcome.checkpoint
        return self.references[key]

    def calm_steps(self, scenario):
        """Steps of an undisturbed run of that length."""
        folder = pathlib.Path(tempfile.mkdtemp(prefix="undisturbed-", dir=self.folder))
        calm = plans.dataclasses.replace(scenario, faults=(), goodput=None)
        outcome = runs.Run(self.launcher, calm, folder, "calm").go()
        if outcome.ended != scenario.ends or outcome.steps == 0:
            raise SystemExit(f"chaos: error: the job makes no steps though nobody disturbs it; see {folder}\n{outcome.said}")
        return outcome.steps

    def disturb(self, scenario, folder, seed):
        """Returns the outcome, and the steps of an undisturbed run at the same time if they are to be compared."""
        run = runs.Run(self.launcher, scenario, folder, seed)
        if scenario.goodput is None:
            return run.go(), 0
        with concurrent.futures.ThreadPoolExecutor(1) as beside:
            calm = beside.submit(self.calm_steps, scenario)
            outcome = run.go()
            calm_steps = calm.result()
        print(f"chaos: {scenario.name}: {outcome.steps} steps, {calm_steps} of an undisturbed run beside it, "
              f"{len(outcome.injuries)} injuries, load {os.getloadavg()[2]:.1f} on {os.cpu_count()} cores", flush=True)
        return outcome, calm_steps

    def do(self, scenario):
        tally = Tally(scenario)
        reference = self.reference(scenario.job) if scenario.equal else None
        for number in range(scenario.runs):
            folder = self.folder / f"{scenario.name.replace(' ', '-').replace('/', '-')}-{number}"
            folder.mkdir()
            outcome, calm_steps = self.disturb(scenario, folder, f"{self.seed}/{scenario.name}/{number}")
            problems = tally.add(outcome, reference, calm_steps)
            for problem in problems:
                print(f"chaos: {scenario.name}, run {number}, seed {self.seed}: {problem}; see {folder}", flush=True)
            if not problems and not self.keep:
                shutil.rmtree(folder)
        # At the end a job may be gone before one kill comes, but not before many.
        if not tally.seconds and not tally.unhealed and scenario.faults and scenario.runs >= 5:
            tally.problems.append("nobody was hurt")
            print(f"chaos: {scenario.name}: nobody was hurt in any run", flush=True)
        return tally

    def close(self, failed):
        if not failed and not self.keep:
            shutil.rmtree(self.folder)


def read_arguments(arguments):
    parser = argparse.ArgumentParser(prog="scripts/chaos.sh", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter, usage=argparse.SUPPRESS)
    parser.add_argument("plans", nargs="*")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--build", default="build")
    parser.add_argument("--runs", type=int)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--only", default="")
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args(arguments)
    if options.quick and options.plans:
        parser.error("--quick is a plan already")
    options.plans = options.plans or [HERE / "plans" / ("quick.yaml" if options.quick else "full.yaml")]
    return options


def main(arguments):
    options = read_arguments(arguments)
    launcher = pathlib.Path(options.build).resolve() / "launcher" / "dtf-launch"
    if not launcher.exists():
        sys.exit(f"chaos: error: no {launcher}: scripts/build.sh {options.build} -Dtests=true, or name another folder with --build")
    tallies = []
    try:
        for path in options.plans:
            plan = plans.read_plan(path)
            laboratory = Laboratory(str(launcher), plan.seed if options.seed is None else options.seed, options.keep)
            before = len(tallies)
            for scenario in plan.scenarios:
                if options.only not in f"{scenario.rows} {scenario.name}":
                    continue
                if options.runs:
                    scenario = plans.dataclasses.replace(scenario, runs=options.runs)
                tallies.append(laboratory.do(scenario))
                print("chaos: " + " | ".join(tallies[-1].cells()), flush=True)
            laboratory.close(any(tally.problems for tally in tallies[before:]))
    except plans.PlanError as error:
        sys.exit(f"chaos: error: {error}")
    if not tallies:
        sys.exit("chaos: error: no scenario has that in its rows or name")
    print(table(tallies))
    return 1 if any(tally.problems for tally in tallies) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
