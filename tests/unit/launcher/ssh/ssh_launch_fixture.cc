#include "tests/unit/launcher/ssh/ssh_launch_fixture.h"

namespace dtf::launcher {

SshLaunch::SshLaunch() : path_(std::getenv("PATH")) {
  // The agent looks for the daemons beside its own program.
  std::filesystem::create_hard_link(DTF_AGENT, folder_ / "dtf-agent", no_link_);
  if (no_link_) std::filesystem::copy_file(DTF_AGENT, folder_ / "dtf-agent");
  std::filesystem::create_directory(folder_ / "bin");
  ::setenv("PATH", ((folder_ / "bin").string() + ":" + path_).c_str(), 1);
  ::setenv("DTF_TEST_FOLDER", folder_.c_str(), 1);  // so that processes() counts them
  ssh(R"(echo $$ >> pids.$host; exec ./dtf-agent)");
  options_.plan.binaries = {"psd", "workerd"};
  options_.plan.cluster_file = folder_ / "cluster.yaml";
  options_.files.texts = {{folder_ / "cluster.yaml", "job: test-job\n"}};
}

}  // namespace dtf::launcher
