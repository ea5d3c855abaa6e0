#!/usr/bin/env python3
"""The promises of libdtf to programs that link it: each header compiles alone, as C++17 and C++20 or as C11, without a
warning, and the library exports the functions of common/api/symbols.txt and nothing else.

Usage: headers_test.py SOURCE_FOLDER LIBDTF
"""
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

SOURCE, LIBRARY = (pathlib.Path(path).resolve() for path in (sys.argv.pop(1), sys.argv.pop(1)))
API = SOURCE / "common/api"
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror"]
COMPILERS = {"c": ["gcc", "clang", "clang-14"], "c++": ["g++", "clang++", "clang++-14"]}
STANDARDS = {"c": ["c11"], "c++": ["c++17", "c++20"]}


def compilers(language):
    """Returns the compilers that are here, each once."""
    found = {str(pathlib.Path(path).resolve()): name for name in COMPILERS[language] if (path := shutil.which(name))}
    return found.values()


def is_for_c(header):
    return 'extern "C"' in header.read_text()


def problem(compiler, language, standard, header):
    """Returns what the compiler prints about a file that includes the header alone."""
    done = subprocess.run([compiler, "-x", language, f"-std={standard}", *WARNINGS, "-fsyntax-only", f"-I{API}", "-"],
                          input=f"#include <dtf/{header.name}>\n", capture_output=True, text=True, timeout=120)
    return done.stderr if done.returncode else ""


def declared():
    """Returns the names of all functions in the C headers."""
    text = "".join(header.read_text() for header in (API / "dtf").glob("*.h") if is_for_c(header))
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    return set(re.findall(r"\b(dtf_\w+)\s*\((?!\*)", text))


class HeadersTest(unittest.TestCase):
    def test_each_header_compiles_alone(self):
        headers = sorted((API / "dtf").glob("*.h"))
        self.assertGreater(len(headers), 5)
        tried = 0
        for header in headers:
            for language in ["c", "c++"] if is_for_c(header) else ["c++"]:
                for compiler in compilers(language):
                    for standard in STANDARDS[language]:
                        with self.subTest(header=header.name, compiler=compiler, standard=standard):
                            self.assertEqual(problem(compiler, language, standard, header), "")
                            tried += 1
        self.assertGreater(tried, len(headers))

    def test_the_library_exports_the_listed_functions(self):
        lines = subprocess.run(["nm", "-D", "--defined-only", str(LIBRARY)], check=True, capture_output=True, text=True,
                               timeout=60).stdout.splitlines()
        exported = sorted(line.split()[-1].split("@")[0] for line in lines if line.split()[-2] != "A")
        listed = (API / "symbols.txt").read_text().split()
        self.assertEqual(listed, sorted(set(listed)), "symbols.txt is sorted")
        self.assertEqual(exported, listed, "a function that goes breaks programs; add a new one to common/api/symbols.txt")

    def test_every_listed_function_is_declared(self):
        self.assertEqual(declared(), set((API / "symbols.txt").read_text().split()))


if __name__ == "__main__":
    unittest.main()
