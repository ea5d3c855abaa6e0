"""Jobs of `dtf-launch`, started and followed from a program."""
from __future__ import annotations

import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import threading
from typing import Any, Iterator, Mapping

import numpy as np

from . import errors
from ._library import lib

Event = dict[str, Any]
_STOP_SECONDS = 60  # until a stopped job has saved


def _jsonable(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise TypeError(f"{value!r} can't be a value of a job's file: use numbers, texts, lists and dicts")


def _program(named: str) -> str:
    """Returns the path of dtf-launch: the one named, $DTF_LAUNCH, of PATH, or beside libdtf."""
    given = named or os.environ.get("DTF_LAUNCH", "")
    places = [given] if given else ["dtf-launch"]
    if not given and os.sep in lib.path:
        library = pathlib.Path(lib.path).resolve()
        places += [str(folder / "dtf-launch") for folder in (library.parents[1] / "bin", library.parents[2] / "bin",
                                                             library.parents[2] / "launcher")]
    for place in places:
        found = shutil.which(place)
        if found:
            return found
    raise errors.UsageError(f"no dtf-launch: tried {', '.join(places)}; install dtf, put it into PATH, or set DTF_LAUNCH to its path")


class Job:
    """A job that runs: a process `dtf-launch up --json`. Iterate over its events; result() waits for the end.

    A context manager: leaving it early, also by Ctrl-C, stops the job, which saves a checkpoint. The process has a session
    of its own, so that Ctrl-C reaches it once, through this object. The end of a `with` raises the job's error, unless it
    was raised before, or another exception is under way.
    Threads: one at a time. Errors: of the exit code, with the message of dtf-launch.
    """

    def __init__(self, process: subprocess.Popen[str], file: str | None):
        self.pid = process.pid
        self.summary: Event | None = None  # the last event of a job that ran
        self._process, self._file = process, file
        self._messages: list[str] = []
        self._stopped = self._ended = self._raised = False
        self._failure: errors.Error | None = None  # of a job that has ended

    def __iter__(self) -> Iterator[Event]:
        """Yields the events as they come: "started", "ready", "progress", "evaluation", "checkpoint", "summary". After the
        last one it raises the job's error, if there is one."""
        yield from self._events()
        self._finish()

    def progress(self) -> Iterator[Event]:
        """Yields the events "progress" alone: step, steps, loss, examples_per_second, eval_..."""
        return (event for event in self if event["event"] == "progress")

    def result(self) -> Event:
        """Waits for the end. Returns the summary: outcome, global_step, final_loss, eval, ... Again: the same."""
        for _ in self._events():
            pass
        self._finish()
        assert self.summary is not None
        return self.summary

    def stop(self) -> None:
        """Asks the job to save and to end. Iterate, or call result(), to wait for it: its outcome is "stopped"."""
        if self._process.poll() is None and not self._stopped:
            self._stopped = True
            self._process.send_signal(signal.SIGINT)

    def _events(self) -> Iterator[Event]:
        assert self._process.stdout is not None
        for line in () if self._process.stdout.closed else self._process.stdout:
            try:
                event: Event = json.loads(line)
            except ValueError:
                raise errors.InternalError(f"dtf-launch printed a line that is no JSON: {line[:200]!r}") from None
            if event.get("event") == "error":
                self._messages.append(str(event.get("message", "")))
            if event.get("event") == "summary":
                self.summary = event
            yield event

    def _finish(self) -> None:
        self._wait()
        if self._failure is not None:
            self._raised = True
            raise self._failure

    def _wait(self) -> None:
        """Waits for the process, and notes its failure."""
        code = self._process.wait()
        self._clean()
        if self._ended or (self._stopped and self.summary is not None):
            return
        self._ended = True
        if code != 0 or self.summary is None:
            why = "\n".join(self._messages) or f"dtf-launch ended with exit code {code}; its messages are on stderr"
            if self.summary is not None and not self._messages:
                why = f"the job {self.summary.get('job', '')} {self.summary.get('outcome', 'failed')}: exit code {code}; see its logs"
            self._failure = errors.of_code(code or errors.InternalError.code, why)

    def _clean(self) -> None:
        if self._process.stdout is not None:
            self._process.stdout.close()
        if self._file is not None:
            pathlib.Path(self._file).unlink(missing_ok=True)
            self._file = None

    def __enter__(self) -> Job:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.close()
        is_stopped = self._stopped and not self._messages  # before there was anything to save
        if kind is None and not self._raised and not is_stopped:
            self._finish()

    def close(self) -> None:
        """Stops the job if it runs, and waits until it has ended: then `summary` is there."""
        self.stop()
        kill = threading.Timer(_STOP_SECONDS, self._process.kill)
        kill.start()
        try:
            for _ in self._events():
                pass
            self._wait()
        finally:
            kill.cancel()


def launch(job: Mapping[str, Any] | str | os.PathLike[str], *, run_dir: str | os.PathLike[str] = "",
           settings: Mapping[str, Any] | None = None, folder: str | os.PathLike[str] = ".", fresh: bool = False,
           quiet: bool = True, program: str = "") -> Job:
    """Starts a job: `job` is the path of its file, or its content as a dict: {"job": "digits", "train": {...}}.

    A dict is written to a temporary file in `folder`, where its relative paths start. `settings`: changes as of `--set`:
    {"train.steps": 100}. `fresh`: begins anew. `quiet`: only warnings and errors are printed on stderr.
    """
    command = [_program(program), "up", "--json", *(["--quiet"] if quiet else []), *(["--fresh"] if fresh else [])]
    file = None
    if isinstance(job, Mapping):
        written = json.dumps(job, default=_jsonable, indent=1)
        with tempfile.NamedTemporaryFile("w", dir=folder, prefix=".dtf-job-", suffix=".yaml", delete=False) as made:
            made.write(written + "\n")
        file = made.name
    command.append(os.fspath(file if file is not None else job))  # type: ignore[arg-type]
    if run_dir:
        command += ["--run-dir", os.fspath(run_dir)]
    for key, value in (settings or {}).items():
        command += ["--set", f"{key}={value if isinstance(value, str) else json.dumps(value, default=_jsonable)}"]
    try:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, start_new_session=True)
    except OSError:
        if file is not None:
            os.unlink(file)
        raise
    return Job(process, file)
