"""Commands, files and links of the documentation that lead nowhere are found."""
import readme
from planted import PlantedTest

BUILD = "chapters = [\n  'README.md',\n  'launcher/USING.md',\n]\n"


class ReadmeTest(PlantedTest):
    def problems(self, text, using="# Use\n\n## Stop it\n", build=BUILD):
        files = {"launcher/verbs.cc": '    {"up", Verb::kUp,\n', "tests/bench/main.cc": '    {"rpc", "pings", benchRpc},\n',
                 "scripts/demo.sh": "", "meson.build": build, "launcher/USING.md": using,
                 "README.md": "[all](launcher/USING.md)\n" + text}
        with self.tree(files) as root:
            return list(readme.check(root))

    def test_what_the_readme_has_readers_type_is_there(self):
        good = "`dtf-launch up c.yaml`, `dtf-launch` said, `dtf-bench --check rpc`\n```sh\nscripts/demo.sh  # scripts/gone.sh\n```\n"
        self.assertEqual(self.problems(good), [])
        self.assertEqual(self.problems("`dtf-launch run c.yaml`\n`dtf-bench rpcs`\n```sh\nscripts/gone.sh\n```\n"),
                         ["README.md:2: error: dtf-launch has no verb 'run'", "README.md:3: error: dtf-bench has no table 'rpcs'",
                          "README.md:5: error: scripts/gone.sh is not there"])

    def test_a_chapter_is_checked_like_the_readme(self):
        self.assertEqual(self.problems("", using="`dtf-launch run c.yaml`\n"),
                         ["launcher/USING.md:1: error: dtf-launch has no verb 'run'"])

    def test_a_block_names_its_language_and_why_it_is_not_run(self):
        self.assertEqual(self.problems("```\nls\n```\n"),
                         ["README.md:3: error: a block without its language: sh is run by tests/e2e/chapters_test.py, text is not"])
        self.assertEqual(self.problems("<!-- not run: slow -->\n```sh\nls\n```\n<!-- run by: scripts/demo.sh -->\n```sh\nls\n```\n"), [])
        self.assertEqual(self.problems("<!-- not run -->\n```sh\nls\n```\n"),
                         ["README.md:4: error: commands that aren't run, without a reason"])
        self.assertEqual(self.problems("<!-- run by: scripts/gone.sh -->\n```sh\nls\n```\n"),
                         ["README.md:4: error: scripts/gone.sh is not there"])

    def test_a_copy_of_a_file_is_in_that_file(self):
        block = "<!-- copy of: launcher/verbs.cc -->\n```cpp\n%s\n```\n"
        self.assertEqual(self.problems(block % '    {"up", Verb::kUp,'), [])
        self.assertEqual(self.problems(block % '    {"down", Verb::kUp,'),
                         ["README.md:4: error: launcher/verbs.cc has no such text: copy the block again"])
        self.assertEqual(self.problems("<!-- copy of: gone.cc -->\n```cpp\nx\n```\n"), ["README.md:4: error: gone.cc is not there"])

    def test_links_lead_to_files_and_headings(self):
        self.assertEqual(self.problems("[a](launcher/USING.md#stop-it) [b](https://dtf.invalid/x)\n"), [])
        self.assertEqual(self.problems("[a](launcher/GONE.md) [b](launcher/USING.md#start-it)\n"),
                         ["README.md:2: error: launcher/GONE.md is not there",
                          "README.md:2: error: launcher/USING.md#start-it: it has no such heading"])

    def test_chapters_are_linked_and_installed(self):
        self.assertEqual(self.problems("", build=BUILD.replace("]", "  'scripts/README.md',\n]")),
                         ["meson.build:1: error: the chapter scripts/README.md is not there",
                          "scripts/README.md:1: error: no chapter links to it"])
        self.assertEqual(self.problems("", build=BUILD.replace("  'launcher/USING.md',\n", "")),
                         ["launcher/USING.md:1: error: a chapter links to it, and `chapters` of meson.build doesn't install it"])

    def test_the_readme_stays_short(self):
        self.assertEqual(self.problems("a\n" * 260), ["README.md:1: error: 261 lines, 260 at most"])
        self.assertEqual(self.problems("a" * 14 * 1024),
                         ["README.md:1: error: 14361 bytes, 14336 at most: move a part to its chapter"])
