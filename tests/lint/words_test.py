"""Turns of phrase are counted in the texts that people read, and lists of excess only get shorter."""
import pathlib

import words
from planted import PlantedTest

BAD = {
    "nominal What/Who": "Who reads this waits.",
    "who/whom/whose": "A task whose ps is lost waits.",
    "what": "It writes what came.",
    "fragment": "Of the last step.",
    "those of": "The values of a ps and those of a worker.",
    "said/told/asked": "The ps is told of it.",
}


def turns(kind, name, text):
    """The turns of phrase in the texts of that kind in a file."""
    texts = [each for found, _, each in words.texts_of(pathlib.Path(name), text) if found == kind]
    return sorted(turn for each in texts for turn, _ in words.turns_in(each))


class WordsTest(PlantedTest):
    def check(self, files, listed=None, rebuilt=()):
        with self.tree(files) as root:
            return list(words.check(root, {} if listed is None else listed, rebuilt))

    def test_each_turn_is_found_in_each_kind_of_comment(self):
        for turn, sentence in BAD.items():
            for name, text in {"common/net/a.h": f"// {sentence}\nint a;\n", "common/net/a.cc": f"/* {sentence} */\n",
                               "gpu/a.cu": f"// {sentence}\n", "scripts/a.sh": f"# {sentence}\n", "meson.build": f"# {sentence}\n",
                               "tests/a.py": f'"""{sentence}"""\n', "tests/b.py": f"# {sentence}\n"}.items():
                self.assertIn(turn, turns("comments", name, text), name)
            self.assertIn(turn, turns("schemas", "common/wire/a.capnp", f"a @0 () -> ();\n# {sentence}\n"))
            self.assertIn(turn, turns("Markdown", "README.md", f"## A\n\n- {sentence}\n"))
            self.assertIn(turn, turns("Markdown", "README.md", f"| a | {sentence} |\n"))
            self.assertIn(turn, turns("messages", "daemons/a.cc", f'throw Error("{sentence}");\n'))
            self.assertIn(turn, turns("messages", "scripts/a.sh", f'echo "{sentence}"\n'))
            self.assertIn(turn, turns("help", "launcher/a.cc", f'{{"--port", "{sentence}"}},\n'))

    def test_plain_sentences_are_free_of_them(self):
        for sentence in ("Writes the received bytes to the file.", "Returns false if the ps was restarted.",
                         "Who reads this?", "Waits for `what` and `those of`.", "Whole files only, notwithstanding."):
            self.assertEqual(turns("Markdown", "README.md", sentence), [], sentence)

    def test_texts_are_joined_and_code_is_left_out(self):
        self.assertEqual(turns("comments", "a.h", "// The values and those\n// of a worker.\n"), ["those of"])
        self.assertEqual(turns("comments", "a.h", "int a;  // of the last step\nint b;  // what came\n"), ["what"])
        self.assertEqual(turns("comments", "a.h", 'f("a // what came");\nchar c = \'"\';  // plain\n'), [])
        self.assertEqual(turns("messages", "a.cc", 'f("the values and those "\n  "of a worker");\n'), ["those of"])
        self.assertEqual(turns("messages", "a.cc", 'f("what came");\n'), [], "a name has fewer words")
        self.assertEqual(turns("messages", "tests/unit/a.cc", 'f("it writes what came");\n'), [], "texts of tests are data")
        self.assertEqual(turns("comments", "a.sh", 'echo "# what came" \'# what came\'\n'), [])
        self.assertEqual(turns("comments", "a.py", "x = 'what came'\n"), [])
        self.assertEqual(turns("Markdown", "a.md", "```\nwhat came\n```\n"), [])

    def test_a_rate_above_the_goal_names_the_worst_files(self):
        plain = "// Writes the bytes to the file.\n"
        files = {"common/net/a.h": "// It writes what came.\n" * 2 + plain * 10, "common/net/b.h": "// It keeps what came.\n" + plain * 10}
        self.assertEqual(self.check(files), [
            "common/net/a.h:1: error: comments of common/net: 3 times 'what' in 132 words, 2 above 2.5 per 1000, 0 are listed: "
            "common/net/a.h 2, common/net/b.h 1"])
        self.assertEqual(self.check({"common/net/a.h": "// It writes what came.\n" + plain * 20}), [], "one is within the goal")

    def test_listed_excess_only_falls(self):
        place = ("common/net", "comments")
        files = {"common/net/a.h": "// It writes what came.\n" * 9}
        self.assertEqual(self.check(files, {place: {"what": 8}}), [])
        self.assert_found("9 times 'what' in 36 words, 8 above 2.5 per 1000, 7 are listed", self.check(files, {place: {"what": 7}}))
        self.assert_found("'what' is 8 above the goal: lower the number from 13", self.check(files, {place: {"what": 13}}))
        self.assert_found("take it off the list", self.check(files, {place: {"what": 8, "those of": 1}}))
        self.assert_found("take it off the list", self.check({}, {place: {"what": 8}}))

    def test_comments_of_rebuilt_folders_are_free_until_they_hold_the_goals(self):
        comments = "// It writes what came.\n" * 3
        files = {"common/wire/a.h": comments}
        self.assertEqual(self.check(files, rebuilt=("common/wire",)), [])
        message = 'throw Error("it writes what came");\n' * 3
        self.assert_found("messages of common/wire: 3 times 'what'",
                          self.check({"common/wire/a.cc": comments + message}, rebuilt=("common/wire",)))
        self.assert_found("comments of common/wire hold the goals: take it off REBUILT", self.check({}, rebuilt=("common/wire",)))

    def test_no_folder_joins_the_rebuilt_ones(self):
        self.assertLessEqual(set(words.REBUILT), {"launcher"})
