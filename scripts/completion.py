#!/usr/bin/env python3
"""Completions of dtf's programs for a shell, from the output of their --help.

Usage: completion.py bash|zsh|fish PROGRAM...      prints one script for all of them
"""
import pathlib
import sys

import completion_bash
import completion_fish
import completion_zsh
from help_text import HelpText, ask

SHELLS = {"bash": completion_bash, "zsh": completion_zsh, "fish": completion_fish}


def main():
    shell, *programs = sys.argv[1:]
    texts = [HelpText(ask(str(pathlib.Path(program).resolve()), "--help")) for program in programs]
    print(SHELLS[shell].script_of(texts), end="")


main()
