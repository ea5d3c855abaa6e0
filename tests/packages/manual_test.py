#!/usr/bin/env python3
"""The manual pages and completions that a build made: complete, readable by man, and doing what a person presses Tab for.

Usage: manual_test.py BUILD_FOLDER
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
MADE = BUILD / "configs/installed"
PROGRAMS = {"psd": BUILD / "daemons/psd/psd", "workerd": BUILD / "daemons/workerd/workerd",
            "dtf-launch": BUILD / "launcher/dtf-launch", "dtf-agent": BUILD / "launcher/dtf-agent"}


def said(*command):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True, timeout=60)


def rendered(page):
    """As plain text of wide lines; man's complaints are part of it."""
    done = subprocess.run(["man", "--warnings", "-l", str(page)], check=True, capture_output=True, text=True, timeout=60,
                          env={"MANWIDTH": "200", "LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin", "MAN_KEEP_FORMATTING": ""})
    return done.stdout, done.stderr


class Manual(unittest.TestCase):
    def test_every_option_of_every_program_is_in_its_page(self):
        for name, program in PROGRAMS.items():
            page = (MADE / f"{name}.1").read_text().replace("\\-", "-")
            options = re.findall(r"^  (--[a-z-]+)", said(program, "--help").stdout, re.M)
            self.assertGreater(len(options), 0)
            for option in options:
                self.assertIn(option, page, name)

    def test_every_verb_is_told_with_what_its_own_help_says(self):
        page = (MADE / "dtf-launch.1").read_text().replace("\\-", "-")
        verbs = re.findall(r"^  dtf-launch ([a-z]+) ", said(PROGRAMS["dtf-launch"], "--help").stdout, re.M)
        self.assertGreater(len(verbs), 10)
        for verb in verbs:
            self.assertIn(f"\\fB{verb}\\fR", page)
        self.assertIn("Ctrl-C saves a checkpoint", page)

    def test_every_key_of_the_files_is_in_the_page_of_the_files(self):
        page = (MADE / "dtf-cluster.yaml.5").read_text().replace("\\-", "-")
        keys = re.findall(r"^  (\S+)  +\S", said(PROGRAMS["dtf-launch"], "--help-config").stdout, re.M)
        self.assertGreater(len(keys), 100)
        for key in keys:
            self.assertIn(f"\\fB{key}\\fR", page)

    @unittest.skipUnless(shutil.which("man"), "there is no man here")
    def test_man_shows_each_page_without_a_warning(self):
        for page in [*(MADE / f"{name}.1" for name in PROGRAMS), MADE / "dtf-cluster.yaml.5"]:
            text, complaints = rendered(page)
            self.assertEqual(complaints, "", page)
            self.assertIn("NAME", text)


class Completion(unittest.TestCase):
    def offered(self, *words, folder=BUILD):
        """What Tab offers at the end of the last word, in that folder."""
        script = ('source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _${1//-/_}; '
                  'printf "%s\\n" "${COMPREPLY[@]}"')
        done = subprocess.run(["bash", "-c", script, "bash", str(MADE / "dtf-launch"), *words], check=True, capture_output=True,
                              text=True, timeout=60, cwd=folder)
        self.assertEqual(done.stderr, "")
        return done.stdout.splitlines() if done.stdout.strip() else []

    def test_verbs(self):
        self.assertEqual(self.offered("dtf-launch", "ex"), ["explain", "export"])

    def test_options_are_those_of_the_verb(self):
        self.assertEqual(self.offered("dtf-launch", "up", "--fr"), ["--fresh"])
        self.assertEqual(self.offered("dtf-launch", "check", "--fr"), [])
        self.assertEqual(self.offered("dtf-launch", "--deta"), ["--detach"], "as of `up`, which may be left out")
        self.assertEqual(self.offered("dtf-launch", "keys", "init", "d", "--da"), ["--days"])
        self.assertEqual(self.offered("dtf-launch", "check", "--inse"), ["--insecure"])

    def test_words_that_only_some_have(self):
        self.assertEqual(self.offered("dtf-launch", "--color", "a"), ["auto", "always"])
        self.assertEqual(self.offered("psd", "--log-level", "w"), ["warning"])
        self.assertEqual(self.offered("dtf-launch", "keys", ""), ["init", "issue", "renew", "show"])
        self.assertEqual(self.offered("dtf-launch", "help", "ke"), ["keys"])

    def test_files_and_folders(self):
        self.assertEqual(self.offered("dtf-launch", "explain", "build.ni"), ["build.ninja"])
        self.assertEqual(self.offered("workerd", "--cluster", "build.ni"), ["build.ninja"])
        self.assertEqual(self.offered("psd", "--run-dir", "build.ni"), [], "no folder")

    def test_names_with_spaces_and_a_folder_called_like_a_verb(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "my job.yaml").touch()
            pathlib.Path(folder, "logs").mkdir()
            self.assertEqual(self.offered("dtf-launch", "up", "my", folder=folder), ["my job.yaml"])
            self.assertEqual(self.offered("dtf-launch", "lo", folder=folder), ["logs"], "the verb, once")


unittest.main()
