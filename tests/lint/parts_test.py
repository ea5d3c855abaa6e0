"""Cycles between parts of the launcher, the daemons and headers are found."""
import parts
from planted import PlantedTest

NONE = {"folder_cycles": frozenset(), "root_cycles": frozenset(), "daemon_includes": frozenset()}


class PartsTest(PlantedTest):
    def problems(self, files, **lists):
        return self.found(parts.check, files, **{**NONE, **lists})

    def test_includes_of_lower_parts_pass(self):
        self.assertEqual(self.problems({
            "launcher/main.cc": '#include "launcher/ssh/a.h"\n', "launcher/ssh/a.h": '#include "launcher/b.h"\n', "launcher/b.h": "",
            "launcher/systemd/u.h": '#include "launcher/ssh/a.h"\n',
            "daemons/psd/p.h": '#include "daemons/d.h"\n', "daemons/d.h": "", "daemons/d.cc": '#include "daemons/d.h"\n',
        }), [])

    def test_two_folders_that_include_each_other_are_found(self):
        files = {"launcher/ssh/a.h": '#include "launcher/slurm/b.h"\n', "launcher/ssh/c.h": "",
                 "launcher/slurm/b.h": "", "launcher/slurm/d.cc": '\n#include "launcher/ssh/c.h"\n'}
        found = self.problems(files)
        self.assert_found("launcher/slurm to launcher/ssh in launcher/slurm/d.cc:2", found)
        self.assert_found("launcher/ssh to launcher/slurm in launcher/ssh/a.h:1", found)
        self.assertEqual(self.problems(files, folder_cycles=frozenset({("launcher/ssh", "launcher/slurm")})), [])

    def test_a_cycle_through_a_third_folder_is_found_beside_a_listed_one(self):
        files = {"launcher/ssh/a.h": '#include "launcher/slurm/b.h"\n#include "launcher/network/n.h"\n', "launcher/ssh/c.h": "",
                 "launcher/slurm/b.h": "", "launcher/network/n.h": '#include "launcher/systemd/u.h"\n',
                 "launcher/systemd/u.h": '#include "launcher/ssh/c.h"\n', "launcher/slurm/d.cc": '#include "launcher/ssh/c.h"\n'}
        found = self.problems(files, folder_cycles=frozenset({("launcher/ssh", "launcher/slurm")}))
        self.assert_found("cycle: launcher/network to launcher/systemd", found)

    def test_listed_folders_that_cross_no_more_come_off_the_list(self):
        files = {"launcher/ssh/a.h": '#include "launcher/slurm/b.h"\n', "launcher/slurm/b.h": ""}
        for listed in (("launcher/ssh", "launcher/slurm"), ("launcher/slurm", "launcher/ssh")):
            self.assert_found("take them off FOLDER_CYCLES", self.problems(files, folder_cycles=frozenset({listed})))

    def test_a_file_of_the_root_that_a_folder_needs_may_not_include_it(self):
        files = {"launcher/task.h": "", "launcher/task.cc": '#include "launcher/ssh/hosts.h"\n', "launcher/ssh/hosts.h": "",
                 "launcher/ssh/link.cc": '#include "launcher/between.h"\n', "launcher/between.h": '#include "launcher/task.h"\n'}
        self.assert_found("launcher/task.cc:1: error: includes launcher/ssh/hosts.h", self.problems(files))
        listed = frozenset({("launcher/task.cc", "launcher/ssh/hosts.h")})
        self.assertEqual(self.problems(files, root_cycles=listed), [])
        files["launcher/ssh/link.cc"] = ""
        self.assert_found("take them off ROOT_CYCLES", self.problems(files, root_cycles=listed))

    def test_psd_and_workerd_never_include_each_other(self):
        files = {"daemons/workerd/w.cc": '#include "daemons/psd/p.h"\n', "daemons/psd/p.h": "",
                 "daemons/psd/q.cc": '#include "daemons/workerd/v.h"\n', "daemons/workerd/v.h": ""}
        found = self.problems(files)
        self.assert_found("daemons/workerd/w.cc:1: error: daemons/workerd may not include daemons/psd/p.h", found)
        self.assert_found("daemons/psd/q.cc:1: error: daemons/psd may not include", found)

    def test_shared_code_of_the_daemons_includes_neither(self):
        files = {"daemons/d.h": '#include "daemons/psd/p.h"\n', "daemons/psd/p.h": ""}
        self.assert_found("daemons/d.h:1: error: daemons may not include daemons/psd/p.h", self.problems(files))
        listed = frozenset({("daemons/d.h", "daemons/psd/p.h")})
        self.assertEqual(self.problems(files, daemon_includes=listed), [])
        files["daemons/d.h"] = ""
        self.assert_found("take it off DAEMON_INCLUDES", self.problems(files, daemon_includes=listed))

    def test_headers_in_a_cycle_are_found(self):
        files = {"common/base/a.h": '#include "common/base/b.h"\n', "common/base/b.h": '#include "c.h"\n',
                 "common/base/c.h": '#include "common/base/a.h"\n'}
        self.assert_found("cycle: common/base/a.h, common/base/b.h, common/base/c.h, common/base/a.h", self.problems(files))
