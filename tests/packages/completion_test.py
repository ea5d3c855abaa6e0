#!/usr/bin/env python3
"""The completions that a build made for bash, zsh and fish, as each shell itself offers them on Tab. Reports shells that are not
installed as skipped.

Usage: completion_test.py BUILD_FOLDER
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
MADE = BUILD / "configs/installed"
HERE = pathlib.Path(__file__).resolve().parent


def asked(*command, folder):
    with tempfile.TemporaryDirectory() as home:  # fish and zsh write there
        done = subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True, timeout=60, cwd=folder,
                              env={"HOME": home, "PATH": f"{BUILD}/launcher:{os.environ['PATH']}", "TERM": "dumb", "LC_ALL": "C.UTF-8"})
    if done.stderr:
        raise AssertionError(done.stderr)
    return [line.strip() for line in done.stdout.splitlines() if line.strip()]


class Cases:
    """Cases for every shell. `offered(*words)` returns the words that Tab offers at the end of the last one, sorted."""

    def test_verbs(self):
        self.assertEqual(self.offered("dtf-launch", "ex"), ["explain", "export"])

    def test_options_are_those_of_the_verb(self):
        self.assertEqual(self.offered("dtf-launch", "up", "--fr"), ["--fresh"])
        self.assertEqual(self.offered("dtf-launch", "check", "--fr"), [])
        self.assertEqual(self.offered("dtf-launch", "--deta"), ["--detach"], "as of `up`, which may be left out")
        self.assertEqual(self.offered("dtf-launch", "keys", "init", "d", "--da"), ["--days"])
        self.assertEqual(self.offered("dtf-launch", "check", "--inse"), ["--insecure"])
        self.assertEqual(self.offered("dtf-launch", "init", "--da"), ["--data"], "and none of `keys init`")

    def test_words_that_only_some_have(self):
        self.assertEqual(self.offered("dtf-launch", "--color", "a"), ["always", "auto"])
        self.assertEqual(self.offered("psd", "--log-level", "w"), ["warning"])
        self.assertEqual(self.offered("dtf-launch", "keys", ""), ["init", "issue", "renew", "show"])
        self.assertEqual(self.offered("dtf-launch", "help", "ke"), ["keys"])

    def test_files_and_folders(self):
        self.assertEqual(self.offered("dtf-launch", "explain", "build.ni"), ["build.ninja"])
        self.assertEqual(self.offered("workerd", "--cluster", "build.ni"), ["build.ninja"])
        self.assertEqual(self.offered("psd", "--run-dir", "build.ni"), [], "no folder")

    def test_keys_of_a_job(self):
        self.assertEqual(self.offered("dtf-launch", "up", "--set", "train.st"), ["train.steps="])
        self.assertEqual(self.offered("workerd", "--set", "train.optimizer.adam.beta"),
                         ["train.optimizer.adam.beta1=", "train.optimizer.adam.beta2="])

    def test_tasks_of_a_run(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "job.yaml").write_text("cluster: {ps: ['a:1'], worker: ['b:1', 'b:2']}\n")
            logs = pathlib.Path(folder, "runs/job/logs")
            logs.mkdir(parents=True)
            for name in ("ps-0.1.log", "worker-0.1.log", "worker-1.1.log"):
                (logs / name).touch()
            self.assertEqual(self.offered("dtf-launch", "logs", "job.yaml", "wor", folder=folder), ["worker/0", "worker/1"])
            self.assertEqual(self.offered("dtf-launch", "logs", "-f", "job.yaml", "ps", folder=folder), ["ps/0"])

    def test_names_with_spaces(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "my job.yaml").touch()
            self.assertEqual(self.offered("dtf-launch", "up", "my", folder=folder), ["my job.yaml"])

    def test_a_folder_called_like_a_verb(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "logs").mkdir()
            offered = {word.rstrip("/") for word in self.offered("dtf-launch", "lo", folder=folder)}
            self.assertEqual(offered, {"logs"})


class Bash(Cases, unittest.TestCase):
    def offered(self, *words, folder=BUILD):
        script = ('source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _${1//-/_}; '
                  'printf "%s\\n" "${COMPREPLY[@]}"')
        return sorted(asked("bash", "-c", script, "bash", MADE / "dtf-launch", *words, folder=folder))


@unittest.skipUnless(shutil.which("zsh"), "there is no zsh here")
class Zsh(Cases, unittest.TestCase):
    def offered(self, *words, folder=BUILD):
        lines = asked("zsh", "-f", HERE / "offered.zsh", MADE, folder, " ".join(words), folder=folder)
        # An interactive zsh offers a name once, however many groups have it.
        return sorted({line.replace("\\ ", " ") for line in lines})


@unittest.skipUnless(shutil.which("fish"), "there is no fish here")
class Fish(Cases, unittest.TestCase):
    def offered(self, *words, folder=BUILD):
        script = f'source {MADE}/dtf-launch.fish; complete -C "{" ".join(words)}"'
        lines = asked("fish", "--no-config", "-c", script, folder=folder)
        return sorted(line.split("\t")[0].replace("\\ ", " ") for line in lines)


unittest.main()
