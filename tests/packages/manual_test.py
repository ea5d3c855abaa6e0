#!/usr/bin/env python3
"""The manual pages that a build made: complete, and readable by man.

Usage: manual_test.py BUILD_FOLDER
"""
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
MADE = BUILD / "configs/installed"
PROGRAMS = {"psd": BUILD / "daemons/psd/psd", "workerd": BUILD / "daemons/workerd/workerd",
            "dtf-launch": BUILD / "launcher/dtf-launch", "dtf-agent": BUILD / "launcher/dtf-agent"}


def said(*command):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True, timeout=60)


def rendered(page):
    """Returns the page as plain text in wide lines, and man's warnings."""
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


unittest.main()
