#!/usr/bin/env python3
"""calls.py finds each missing method and code."""

import pathlib
import tempfile
import unittest

import calls

SCHEMA = """interface Gate @0xff {
  hello @0 (name :Text) -> (session :Session);
  status @1 () -> (json :Text);
  struct Inner @0xee {
    file @0 :Text;  # in the folder
  }
}
interface Session @0xdd {
  finish @0 () -> ();
}
"""


class CallsTest(unittest.TestCase):
    def setUp(self):
        self.methods = calls.methods_of(SCHEMA)

    def missing(self, log, codes=(), unserved=frozenset()):
        with tempfile.TemporaryDirectory() as folder:
            for number, text in enumerate(log):
                (pathlib.Path(folder) / str(number)).write_text(text)
            return list(calls.missing(self.methods, codes, *calls.merged(pathlib.Path(folder)), unserved))

    def test_methods_are_read_with_their_interfaces(self):
        self.assertEqual(self.methods, {(255, 0): "Gate.hello", (255, 1): "Gate.status", (221, 0): "Session.finish"})

    def test_the_real_schemas_and_codes_are_found(self):
        self.assertGreaterEqual(len(calls.all_methods(calls.ROOT)), 25)
        self.assertEqual(len(calls.all_codes(calls.ROOT)), 9)

    def test_all_of_several_files_counts(self):
        log = ["call 0xff 0 ok\ncall 0xff 1 ok\nexit usage\n", "call 0xdd 0 ok\ncall 0xdd 0 deadline\n"]
        self.assertEqual(self.missing(log, ("usage", "deadline")), [])

    def test_a_method_that_only_fails_is_missing(self):
        log = ["call 0xff 0 ok\ncall 0xff 1 internal\ncall 0xdd 0 ok\n"]
        self.assertEqual(self.missing(log), ["no test has had an answer from Gate.status"])

    def test_a_method_that_this_host_cannot_serve_is_not_required(self):
        self.assertIn("PsData.openRemote", calls.all_methods(calls.ROOT).values())
        log = ["call 0xff 0 ok\ncall 0xff 1 ok\n"]
        self.assertEqual(self.missing(log), ["no test has had an answer from Session.finish"])
        self.assertEqual(self.missing(log, unserved={"Session.finish"}), [])

    def test_a_code_nobody_met_is_missing(self):
        log = ["call 0xff 0 ok\ncall 0xff 1 ok\ncall 0xdd 0 ok\ncall 0x11 0 deadline\n"]
        self.assertEqual(self.missing(log, ("deadline",)), ["no test has met the error code deadline"])

    def test_other_lines_are_refused(self):
        with self.assertRaises(SystemExit):
            self.missing(["what is this\n"])


if __name__ == "__main__":
    unittest.main()
