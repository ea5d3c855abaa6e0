"""Commands and files that README.md names and that do not exist are found."""
import readme
from planted import PlantedTest


class ReadmeTest(PlantedTest):
    def problems(self, text):
        files = {"launcher/options.cc": '    {"up", Verb::kUp,\n', "tests/bench/main.cc": '    {"rpc", "pings", benchRpc},\n',
                 "scripts/demo.sh": "", "README.md": text}
        with self.tree(files) as root:
            return list(readme.check(root))

    def test_what_the_readme_has_readers_type_is_there(self):
        good = "`dtf-launch up c.yaml`, `dtf-launch` said, `dtf-bench --check rpc`\n```\nscripts/demo.sh  # scripts/gone.sh\n```\n"
        self.assertEqual(self.problems(good), [])
        self.assertEqual(self.problems("`dtf-launch run c.yaml`\n`dtf-bench rpcs`\n```\nscripts/gone.sh\n```\n"),
                         ["README.md:1: error: dtf-launch has no verb 'run'", "README.md:2: error: dtf-bench has no table 'rpcs'",
                          "README.md:4: error: scripts/gone.sh is not there"])
