"""mutate.py plants a mistake in its one place, or reports that it no longer fits."""
import unittest

import mutate

CODE = "int f() {\n  if (a)\n    g(1);\n  return h(2);\n}\n"


def edit(find, replace, file="a.cc"):
    return {"what": "does something", "file": file, "find": find, "replace": replace}


class MutateTest(unittest.TestCase):
    def mutated(self, *edits, code=CODE):
        mutations = {f"M{i}": [one] for i, one in enumerate(edits)}
        text = mutate.mutated(code, "spec", "a.cc", mutations)
        return text.split('#line 1 "a.cc"\n', 1)[1]

    def test_statements_get_a_choice_that_fits_where_they_were(self):
        self.assertIn("if (a)\n    { if (::dtf::sim::mutant == ::dtf::sim::Mutant::kM0) { k(); } else { g(1); } }",
                      self.mutated(edit("g(1);", "k();")))

    def test_an_expression_gets_a_choice_too(self):
        self.assertIn("return (::dtf::sim::mutant == ::dtf::sim::Mutant::kM0 ? (3) : (h(2)));", self.mutated(edit("h(2)", "3")))

    def test_how_code_is_wrapped_does_not_matter(self):
        self.assertIn("kM0", self.mutated(edit("if (a) g(1);", "")))

    def test_only_what_is_marked_is_replaced(self):
        text = self.mutated(edit("if («a») g(1);", "true"))
        self.assertIn("? (true) : (a)))\n    g(1);", text)

    def test_code_that_has_changed_is_an_error_that_says_where(self):
        for find, count in (("g(7);", 0), ("(", 4)):
            with self.assertRaisesRegex(mutate.Mistake, rf"spec: \[\[M0\]\]: its text is {count} times in a.cc"):
                self.mutated(edit(find, ""))

    def test_two_mutations_of_one_place_are_an_error(self):
        with self.assertRaisesRegex(mutate.Mistake, "M0 and M1 change the same place"):
            self.mutated(edit("return h(2);", ""), edit("h(2)", "3"))

    def test_the_mutations_of_the_tree_fit_its_code(self):
        for name, at_least in (("sim", 20), ("session_sim", 20), ("conformance", 5)):
            spec = mutate.ROOT / "tests" / name / "mutations.toml"
            mutations = mutate.load(spec)
            for file in mutate.files_of(mutations):
                mutate.mutated((mutate.ROOT / file).read_text(), spec, file, mutations)
            self.assertGreaterEqual(len(mutations), at_least, spec)


if __name__ == "__main__":
    unittest.main()
