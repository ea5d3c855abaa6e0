#!/usr/bin/env python3
"""Tests how scripts/chaos.sh reads plans and judges outcomes, without any job."""
import pathlib
import tempfile
import unittest

import chaos
import plan
import run


def read(text):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "plan.yaml")
        path.write_text(text)
        return plan.read_plan(path)


ONE = "scenarios: [{rows: R1, name: n, job: {%s}, faults: [{%s}]}]"


class PlanTest(unittest.TestCase):
    def test_the_plans_of_the_tree_are_read(self):
        names = sorted(path.name for path in (chaos.HERE / "plans").glob("*.yaml"))
        self.assertIn("quick.yaml", names)
        for name in names:
            self.assertTrue(plan.read_plan(chaos.HERE / "plans" / name).scenarios)

    def test_both_plans_have_a_row_for_every_promise(self):
        for name in ("quick.yaml", "full.yaml"):
            scenarios = plan.read_plan(chaos.HERE / "plans" / name).scenarios
            rows = {row for scenario in scenarios for row in scenario.rows.split(", ")}
            self.assertEqual(rows, {"R1", "R2", "R3", "R4", "R5", "R12", "R13", "R18", "R21", "checkpoint", "snapshot", "replica",
                                    "keys", "gather"}, name)

    def test_a_fault_in_all_its_forms(self):
        scenario = read(ONE % ("workers: 3", "who: worker/2, how: {stop: [1, 2]}, when: {step: 5}, times: 2")).scenarios[0]
        fault = scenario.faults[0]
        self.assertEqual((fault.how, fault.seconds, fault.step, fault.times), ("stop", (1, 2), 5, 2))
        self.assertTrue(fault.is_on("worker/2"))
        self.assertFalse(fault.is_on("worker/1"))
        slow = read(ONE % ("", "who: worker/1, how: {slow: 0.1}")).scenarios[0].faults[0]
        self.assertEqual((slow.how, slow.share), ("slow", 0.1))
        chief = read(ONE % ("", "who: chief")).scenarios[0].faults[0]
        self.assertTrue(chief.is_on("worker/0"))
        self.assertEqual(chief.how, "kill")

    def test_mistakes_are_named_with_their_place(self):
        for text, complaint in (
                ("seed: 1", "no scenarios"),
                ("sceanrios: []", "unknown key 'sceanrios'; known are: scenarios, seed"),
                ("a: [", "no YAML"),
                ("scenarios: [{name: n}]", "scenarios[0]: 'rows' is missing"),
                (ONE % ("worker: 3", "who: ps"), "scenarios[0] (n): job: unknown key 'worker'"),
                (ONE % ("", "who: workers"), "faults[0]: who: 'workers' is no task"),
                (ONE % ("", "who: chief/1"), "who: 'chief/1' is no task"),
                (ONE % ("", "who: ps, how: maim"), "how: 'kill', {stop: SECONDS}, {stop: [FROM, TO]} or {slow: SHARE}, not 'maim'"),
                (ONE % ("", "who: ps, how: {slow: 2}"), "faults[0]: how:"),
                (ONE % ("", "who: ps, how: {stop: 0}"), "faults[0]: how:"),
                (ONE % ("", "who: ps, when: {steps: 1}"), "when: unknown key 'steps'"),
                (ONE % ("file: x.yaml", "who: ps, when: {point: p}"), "a job without 'file'"),
                ("scenarios: [{rows: R1, name: n, ends: well}]", "ends: 'well'")):
            with self.assertRaises(plan.PlanError, msg=text) as caught:
                read(text)
            self.assertIn(complaint, str(caught.exception))

    def test_durability_is_as_in_a_cluster_file(self):
        for text, line in (("", 'durability: "checkpoint"'), ("durability: replica", 'durability: "replica"'),
                           ("durability: {snapshot: {every_steps: 5}}", 'durability: {"snapshot": {"every_steps": 5}}')):
            job = read(ONE % (text, "who: ps")).scenarios[0].job
            self.assertIn(line, run.job_text(job, (), "/f").splitlines())

    def test_keys_and_gathering_are_in_the_file(self):
        text = run.job_text(read(ONE % ("keys: true, gather: true", "who: ps")).scenarios[0].job, (), "/f")
        self.assertIn("keys: /f/keys", text.splitlines())
        self.assertIn("checkpoint: {every_seconds: 3600, gather: true}", text)
        self.assertNotIn("keys", run.job_text(read(ONE % ("", "who: ps")).scenarios[0].job, (), "/f"))

    def test_points_are_in_the_environment_of_their_task_alone(self):
        scenario = read(ONE % ("workers: 2", "who: worker/1, when: {point: checkpoint.after_rename}")).scenarios[0]
        text = run.job_text(scenario.job, scenario.faults, "/f")
        self.assertEqual(text.count("DTF_FAILPOINTS"), 1)
        self.assertIn("checkpoint.after_rename=kill@2", text.split("worker:")[1].splitlines()[0])


class RunTest(unittest.TestCase):
    def test_the_limit_is_counted_from_the_first_injury(self):
        scenario = plan.dataclasses.replace(read(ONE % ("", "who: ps")).scenarios[0], limit=60)
        with tempfile.TemporaryDirectory() as folder:
            one = run.Run("dtf-launch", scenario, folder, "1")
        one.begin = 1000
        self.assertEqual(one.deadline(), 1300, "a busy machine may be slow until a task is hurt")
        one.outcome.injuries += [run.Injury("ps/0", 5, 1200.0), run.Injury("ps/1", 9, 1230.0)]
        self.assertEqual(one.deadline(), 1260)


class TallyTest(unittest.TestCase):
    scenario = plan.Scenario(rows="R1", name="n", job=plan.Job(), faults=(plan.Fault("worker"),))

    def problems(self, scenario=None, **outcome):
        outcome = {"ended": "done", "lost": 0, "doubled": 0, "injuries": [run.Injury("worker/1", 5, 0.0, seconds=0.5)], **outcome}
        return chaos.Tally(scenario or self.scenario).add(run.Outcome(**outcome), None)

    def test_a_run_as_it_should_be(self):
        self.assertEqual(self.problems(lost=0, doubled=0), [])

    def test_what_is_wrong(self):
        self.assertIn("'failed'", self.problems(ended="failed")[0])
        self.assertEqual(self.problems(lost=2, doubled=0), ["2 updates lost"])
        self.assertEqual(self.problems(lost=0, doubled=1), ["1 updates doubled"])
        self.assertEqual(self.problems(restarts={"worker/1": 1, "worker/0": 1}),
                         ["worker/0 was started again 1 times, and hurt 0 times"])
        self.assertEqual(self.problems(left_behind=1), ["1 processes were left"])
        self.assertIn("0 were hurt of 1 planned", self.problems(injuries=[])[0])
        twice = plan.dataclasses.replace(self.scenario, faults=(plan.Fault("worker", times=2),))
        self.assertIn("1 were hurt of 2 planned", self.problems(twice)[0])
        self.assertIn("0.50 s to the next one, 0.4 planned", self.problems(plan.dataclasses.replace(self.scenario, within=0.4))[0])
        self.assertEqual(self.problems(plan.dataclasses.replace(self.scenario, within=0.6)), [])
        late = [run.Injury("worker/1", 5, 0.0, seconds=3.0, seconds_of_process=0.5)]
        of_start = plan.dataclasses.replace(self.scenario, within_of_start=0.4)
        self.assertIn("0.50 s from its next start to a step, 0.4 planned", self.problems(of_start, injuries=late)[0])
        self.assertEqual(self.problems(plan.dataclasses.replace(of_start, within_of_start=0.6), injuries=late), [])
        back = plan.dataclasses.replace(self.scenario, steps_lost=100)
        self.assertEqual(self.problems(back, went_back=[7, 120]), ["going back cost 120 steps, 100 planned"])
        self.assertEqual(self.problems(back, went_back=[7, 100]), [])
        keeps = plan.dataclasses.replace(self.scenario, keeps=0.9)
        self.assertEqual(self.problems(keeps, kept=0.5), ["0.50 of the speed was kept with a slow task, 0.9 planned"])
        self.assertIn("an unknown part", self.problems(keeps)[0])
        self.assertEqual(self.problems(keeps, kept=0.95), [])
        self.assertIn("don't tell how many", self.problems(lost=None)[0])
        of_ps = plan.dataclasses.replace(self.scenario, faults=(plan.Fault("ps"),))
        self.assertEqual(self.problems(of_ps, lost=None, doubled=None), [])
        of_ps = plan.dataclasses.replace(of_ps, job=plan.Job(mode="async"))
        self.assertIn("don't tell how many", self.problems(of_ps, lost=None, doubled=None)[0])
        stuck = self.problems(ended="not in time", injuries=[run.Injury("worker/1", 5, 0.0)])
        self.assertIn("worker/1, hurt after step 5: no step came after it", stuck[1])
        self.assertIn("another", self.problems(plan.dataclasses.replace(self.scenario, equal=True))[0])
        self.assertIn("has not said: why", self.problems(plan.dataclasses.replace(self.scenario, says="why"))[0])

    def test_the_speed_that_is_kept(self):
        self.assertEqual(run.speed_kept([(0, 0), (1, 100), (2, 200), (3, 210), (4, 260)], 2), 0.5)
        self.assertIsNone(run.speed_kept([(0, 0), (3, 210), (4, 260)], 2), "one report is no speed")

    def test_a_slow_task_runs_for_its_share(self):
        slowed = run.Slowed(0.25, until=0)
        self.assertEqual((slowed.turn(1), slowed.until), (run.signal.SIGSTOP, 1 + 0.75 * slowed.PERIOD))
        self.assertEqual((slowed.turn(2), slowed.until), (run.signal.SIGCONT, 2 + 0.25 * slowed.PERIOD))

    def test_updates_are_counted_on_each_ps(self):
        sync = plan.Job(workers=4, aggregate=3, steps=10)
        self.assertEqual(run.updates_amiss(sync, [30, 30], 5), (0, 0))
        self.assertEqual(run.updates_amiss(sync, [30, 32], 5), (0, 2))
        self.assertEqual(run.updates_amiss(sync, [29, 30], 5), (1, 0))
        alone = plan.Job(workers=4, mode="async", steps=10)
        self.assertEqual(run.updates_amiss(alone, [10, 12], 2), (0, 0), "two workers died in the middle of a push")
        self.assertEqual(run.updates_amiss(alone, [10, 7], 2), (1, 0))
        self.assertEqual(run.updates_amiss(alone, [10, 13], 2), (0, 1))
        self.assertEqual(run.updates_amiss(alone, [11, 10], 2), (0, 1), "ps/0 counts the steps")

    def test_the_last_process_of_a_ps_tells(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in (("ps-0.9.log", "killed"), ("ps-1.1.log", ""),
                               ("ps-0.10.log", "x event=job_finished global_step=40 gradients_applied=12 gradients_stale=0\n")):
                pathlib.Path(folder, name).write_text(text)
            log = run.Run.last_log(pathlib.Path(folder), "ps-0")
            self.assertEqual(run.Run.applied(plan.Job(mode="async"), log), 40)
            self.assertEqual(run.Run.applied(plan.Job(mode="sync"), log), 12)
            self.assertIsNone(run.Run.applied(plan.Job(), run.Run.last_log(pathlib.Path(folder), "ps-1")))
            self.assertIsNone(run.Run.applied(plan.Job(), run.Run.last_log(pathlib.Path(folder), "ps-2")))

    def test_checkpoints_are_the_same_to_the_byte(self):
        with tempfile.TemporaryDirectory() as folder:
            ours, theirs = pathlib.Path(folder, "a/step-7"), pathlib.Path(folder, "b/step-7")
            for path in (ours, theirs):
                path.mkdir(parents=True)
            self.assertFalse(chaos.same_files(ours, theirs), "nothing is the same as nothing")
            (ours / "shard-0.safetensors").write_bytes(b"123")
            self.assertFalse(chaos.same_files(ours, theirs))
            (theirs / "shard-0.safetensors").write_bytes(b"124")
            self.assertFalse(chaos.same_files(ours, theirs))
            (theirs / "shard-0.safetensors").write_bytes(b"123")
            self.assertTrue(chaos.same_files(ours, theirs))
            self.assertFalse(chaos.same_files(None, theirs))

    def test_percentiles(self):
        self.assertIsNone(chaos.percentile([], 50))
        self.assertEqual(chaos.percentile([3.0, 1.0, 2.0], 50), 2.0)
        self.assertEqual(chaos.percentile(list(range(1, 201)), 99), 198)
        self.assertEqual(chaos.percentile([1.0], 99), 1.0)


if __name__ == "__main__":
    unittest.main()
