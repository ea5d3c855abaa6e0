#!/usr/bin/env python3
"""Completions of dtf's programs for a shell, from the output of their --help and --help-config.

Usage: completion.py bash|zsh|fish PROGRAM...      prints one script for all of them
"""
import pathlib
import sys

import completion_bash
import completion_fish
import completion_zsh
from help_text import HelpText, ask, keys_of

SHELLS = {"bash": completion_bash, "zsh": completion_zsh, "fish": completion_fish}


def main():
    shell, *programs = sys.argv[1:]
    paths = [str(pathlib.Path(program).resolve()) for program in programs]
    texts = [HelpText(ask(path, "--help")) for path in paths]
    print(SHELLS[shell].script_of(texts, keys_of(ask(paths[0], "--help-config"))), end="")


main()
