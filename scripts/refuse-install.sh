#!/bin/bash
# Meson runs it before it installs from a folder built with tests.
echo "error: the programs of this folder have failpoints in them, where a test can kill them: install from a folder without
tests: meson setup build-release && ninja -C build-release && meson install -C build-release" >&2
exit 1
