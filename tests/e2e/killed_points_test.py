#!/usr/bin/env python3
"""Synchronous replicas under a supervisor, killed at each named point. Usage: killed_points_test.py BUILD PROGRAM

The points are failpoints (common/base/failpoint.cc): a process that comes to one kills itself
there, is started again, and the next process of its task dies at the next point. So every point
is reached and counted: a process that ends in another way fails the test. In the end each program
ends with 0, and the variables have the bits of the undisturbed run.
"""
import pathlib
import re
import signal
import sys
import tempfile
import time

import sync_replicas_test as runs

STEPS = 700
CHIEFS_STEPS = 1600  # where the chief dies at all of its points
# A client whose peer is killed takes no more than 200 steps a second, so that all points come
# before the last step.
SLOW = "supervisor.before_step=sleep:5"

# Where each client dies, with the passage: its own steps and the others' stay well before the end.
OF_EACH_CLIENT = (
    "supervisor.before_open=kill@1",
    "supervisor.after_open=kill@1",
    "supervisor.before_step=kill@3",
    "session.before_send=kill@20",
    "session.between_tasks=kill@21",
    "session.after_send=kill@22",
    "session.after_reply=kill@41",
    "session.after_step=kill@20",
    "supervisor.after_step=kill@3",
)
# The chief alone initialises, writes checkpoints and summaries.
OF_THE_CHIEF_AT_FIRST = (
    "supervisor.after_initialise=kill@1",
    "supervisor.after_ready=kill@1",
)
OF_THE_CHIEF = (
    "supervisor.before_save=kill@1",
    "checkpoint.after_make_attempt=kill@1",
    "checkpoint.after_shard_create=kill@1",
    "checkpoint.in_shard_write=kill@1",
    "checkpoint.after_shard_write=kill@1",
    "checkpoint.after_shard_sync=kill@1",
    "checkpoint.after_shard_close=kill@1",
    "checkpoint.after_check_shards=kill@1",
    "checkpoint.after_manifest_create=kill@1",
    "checkpoint.after_manifest_write=kill@1",
    "checkpoint.after_manifest_sync=kill@1",
    "checkpoint.after_attempt_sync=kill@1",
    "checkpoint.after_rename=kill@1",
    "checkpoint.after_parent_sync=kill@1",
    "supervisor.after_save=kill@1",
    "supervisor.before_summary=kill@1",
    "supervisor.after_summary=kill@1",
    # With more than five checkpoints.
    "checkpoint.after_trash_rename=kill@1",
    "checkpoint.after_trash_removal=kill@1",
)
OF_THE_CHIEFS_END = (
    "supervisor.before_stop=kill@1",
    "supervisor.after_last_save=kill@1",
    "supervisor.after_finished=kill@1",
    "supervisor.after_finish=kill@1",
)
# Points of a step on a ps; ps/0 has the global step, too.
OF_EACH_PS = (
    "replicas.before_accumulate=kill@31",
    "replicas.after_accumulate=kill@32",
    "replicas.before_take=kill@21",
    "replicas.in_take=kill@22",
    "replicas.after_take=kill@23",
    "serving.before_reply=kill@60",
    "serving.after_set=kill@1",
    "serving.after_set=kill@2",
)
OF_PS_0 = (
    "replicas.before_decide=kill@21",
    "replicas.after_decide=kill@22",
)
OF_PS_0_AT_THE_END = "replicas.after_finish=kill"


def check_lists():
    """Each point of the table that such a run passes is in a list, and each of a list is in the table."""
    text = (pathlib.Path(__file__).resolve().parents[2] / "common/base/failpoint.cc").read_text()
    table = re.findall(r'^ +"([a-z]+\.[a-z_]+)",$', text, re.M)
    passed = {name for name in table if name.split(".")[0] in ("checkpoint", "supervisor", "session", "serving", "replicas")}
    lists = (*OF_EACH_CLIENT, *OF_THE_CHIEF_AT_FIRST, *OF_THE_CHIEF, *OF_THE_CHIEFS_END, *OF_EACH_PS, *OF_PS_0, OF_PS_0_AT_THE_END)
    killed = {point.split("=")[0] for point in lists}
    assert passed == killed, f"in no list: {sorted(passed - killed)}; not in the table: {sorted(killed - passed)}"


def state_of(process):
    """The state of a process as the kernel names it: T is stopped."""
    return pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()[0]


def wait_until(what, is_so):
    deadline = time.monotonic() + runs.WITHIN
    while not is_so():
        assert time.monotonic() < deadline, f"not in {runs.WITHIN} s: {what}"
        time.sleep(0.005)


def died_at(process, point):
    """Waits for the end of a process that must kill itself there; returns 1."""
    code = process.wait(runs.WITHIN)
    assert code == -signal.SIGKILL, f"it ended with {code}, not at {point}:\n{runs.text_of(process)}"
    return 1


def undisturbed(folder, steps):
    with runs.Cluster(folder) as cluster:
        clients = [cluster.client(rank, steps) for rank in (0, 1)]
        result = runs.result_of([runs.ended(each) for each in clients][0])
        assert result[0] == steps
        return result


def killed_chief(folder):
    """The chief dies at one point after another, up to its end."""
    kills = 0
    with runs.Cluster(folder) as cluster:
        other = cluster.client(1, CHIEFS_STEPS, failpoints=SLOW)
        for point in (*OF_THE_CHIEF_AT_FIRST, *OF_EACH_CLIENT, *OF_THE_CHIEF, *OF_THE_CHIEFS_END):
            kills += died_at(cluster.client(0, CHIEFS_STEPS, failpoints=point), point)
        texts = [runs.ended(each) for each in (cluster.client(0, CHIEFS_STEPS), other)]
        return kills, runs.result_of(texts[0])


def killed_worker(folder):
    """So does the other client."""
    kills = 0
    with runs.Cluster(folder) as cluster:
        chief = cluster.client(0, STEPS, failpoints=SLOW)
        for point in OF_EACH_CLIENT:
            kills += died_at(cluster.client(1, STEPS, failpoints=point), point)
        texts = [runs.ended(each) for each in (chief, cluster.client(1, STEPS))]
        return kills, runs.result_of(texts[0])


def killed_at_its_end(folder):
    """The chief has ended the run when the other client dies; the next one learns of the end."""
    with runs.Cluster(folder) as cluster:
        chief, other = cluster.client(0, STEPS), cluster.client(1, STEPS, failpoints="supervisor.before_stop=kill")
        text = runs.ended(chief)
        kills = died_at(other, "supervisor.before_stop")
        runs.ended(cluster.client(1, STEPS))
        return kills, runs.result_of(text)


def killed_ps(folder, index):
    """A ps dies at one point after another; each time the clients go back to the last checkpoint."""
    kills = 0
    with runs.Cluster(folder) as cluster:
        clients = [cluster.client(0, STEPS, failpoints=SLOW), cluster.client(1, STEPS)]
        runs.wait_for_checkpoint(cluster)
        cluster.kill(cluster.ps[index])
        for point in (*OF_EACH_PS, *(OF_PS_0 if index == 0 else ())):
            kills += died_at(cluster.start_ps(index, point), point)
        cluster.ps[index] = cluster.start_ps(index)
        texts = [runs.ended(each) for each in clients]
        assert all(text.count("goes on from step") >= 1 for text in texts), texts
        return kills, runs.result_of(texts[0])


# ps/0 stops itself at these points in turn, so many times a step. Then a client is killed, and ps/0
# goes on.
STANDS_AT = {
    "replicas.before_accumulate": 2,
    "replicas.after_accumulate": 2,
    "replicas.before_decide": 1,
    "replicas.after_decide": 1,
    "replicas.before_take": 1,
    "replicas.after_take": 1,
    "serving.before_reply": 2,
}


def killed_while_ps_stands(folder, rank):
    """A client dies while ps/0 stands within a step: its gradient is there or not, the step counted or not."""
    with runs.Cluster(folder) as cluster:
        cluster.kill(cluster.ps[0])
        plan = ";".join(f"{point}=stop@{(30 + 30 * place) * a_step}" for place, (point, a_step) in enumerate(STANDS_AT.items()))
        ps = cluster.start_ps(0, plan)
        clients = [cluster.client(each, STEPS) for each in (0, 1)]
        for point in STANDS_AT:
            wait_until(f"ps/0 stands at {point}", lambda: state_of(ps) == "T")
            cluster.kill(clients[rank])
            ps.send_signal(signal.SIGCONT)
            clients[rank] = cluster.client(rank, STEPS)
        texts = [runs.ended(each) for each in clients]
        return cluster.kills - 1, runs.result_of(texts[0])


def lost_before_the_last_checkpoint(folder):
    """ps/1 dies when the chief has seen the last step and not saved it: the chief fails, and the next one trains again."""
    with runs.Cluster(folder) as cluster:
        chief, other = cluster.client(0, STEPS, failpoints="supervisor.before_stop=stop"), cluster.client(1, STEPS)
        wait_until("the chief is at its end", lambda: state_of(chief) == "T")
        cluster.restart_ps(1)
        chief.send_signal(signal.SIGCONT)
        code = chief.wait(runs.WITHIN)
        assert code == 69, f"the chief ended with {code}:\n{runs.text_of(chief)}"
        texts = [runs.ended(each) for each in (cluster.client(0, STEPS), other)]
        return cluster.kills, runs.result_of(texts[0])


def killed_ps_at_the_end(folder):
    """ps/0 dies as the chief ends the run: the chief fails, and the next one ends the run from the last checkpoint."""
    with runs.Cluster(folder) as cluster:
        cluster.kill(cluster.ps[0])
        cluster.ps[0] = cluster.start_ps(0, OF_PS_0_AT_THE_END)
        chief, other = cluster.client(0, STEPS), cluster.client(1, STEPS)
        kills = died_at(cluster.ps[0], OF_PS_0_AT_THE_END)
        cluster.ps[0] = cluster.start_ps(0)
        code = chief.wait(runs.WITHIN)
        assert code == 69, f"the chief ended with {code}:\n{runs.text_of(chief)}"
        texts = [runs.ended(each) for each in (cluster.client(0, STEPS), other)]
        return kills, runs.result_of(texts[0])


def main():
    check_lists()
    of_each, of_chief = len(OF_EACH_CLIENT), len(OF_THE_CHIEF_AT_FIRST) + len(OF_THE_CHIEF) + len(OF_THE_CHIEFS_END)
    with tempfile.TemporaryDirectory() as temporary:
        root = pathlib.Path(temporary)
        expected = {steps: undisturbed(root / f"undisturbed{steps}", steps) for steps in (STEPS, CHIEFS_STEPS)}
        for name, result, kills in (
            ("the chief", killed_chief, of_each + of_chief),
            ("the other client", killed_worker, of_each),
            ("the other client, at its end", killed_at_its_end, 1),
            ("ps/0", lambda folder: killed_ps(folder, 0), len(OF_EACH_PS) + len(OF_PS_0)),
            ("ps/1", lambda folder: killed_ps(folder, 1), len(OF_EACH_PS)),
            ("the chief while ps/0 stands", lambda folder: killed_while_ps_stands(folder, 0), len(STANDS_AT)),
            ("the other client while ps/0 stands", lambda folder: killed_while_ps_stands(folder, 1), len(STANDS_AT)),
            ("ps/0, at the end", killed_ps_at_the_end, 1),
            ("ps/1, before the last checkpoint", lost_before_the_last_checkpoint, 1),
        ):
            begin = time.monotonic()
            got = result(root / name.replace(" ", "_").replace("/", ""))
            right = kills, expected[CHIEFS_STEPS if name == "the chief" else STEPS]
            assert got == right, f"{name}: {got}, where {right} is right"
            print(f"{name}: killed {kills} times, {time.monotonic() - begin:.1f} s", flush=True)


if __name__ == "__main__":
    main()
