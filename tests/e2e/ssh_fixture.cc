#include "tests/e2e/ssh_fixture.h"

#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

namespace dtf::testing {

namespace fs = std::filesystem;

namespace {

constexpr const char* kSshd = "/usr/sbin/sshd";

}  // namespace

SshTest::SshTest() : agent_folder_(folder_.path() + "/bin") {
  fs::create_directory(agent_folder_);
}

SshTest::~SshTest() {
  sshd_.reset();
}

void SshTest::SetUp() {
  if (::access(kSshd, X_OK) != 0)
    GTEST_SKIP() << "there is no " << kSshd << ": scripts/install-deps.sh --tests installs it";
  // The agent looks for the daemons beside itself; a link would lead it to the build tree, where
  // no command line names this test's folder.
  const std::string root = std::getenv("DTF_BUILD_ROOT");
  fs::copy_file(root + "/launcher/dtf-agent", agent_folder_ + "/dtf-agent");
  for (const char* name : {"psd", "workerd"}) {
    std::error_code no_link;
    fs::create_hard_link(binary(name), agent_folder_ + "/" + name, no_link);
    if (no_link) fs::copy_file(binary(name), agent_folder_ + "/" + name);
  }
  keygen("host_key");
  keygen("id");
  fs::copy_file(folder_.path() + "/id.pub", folder_.path() + "/authorized");
  startSshd();
}

void SshTest::keygen(const std::string& file) const {
  const ProcessResult made = runProcess(
      {"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder_.path() + "/" + file});
  ASSERT_EQ(made.exit_code, 0) << made.err;
}

// sshd takes no port 0: it is tried with others until one is free.
void SshTest::startSshd() {
  if (::geteuid() == 0) fs::create_directories("/run/sshd");  // of its privilege separation
  const std::string path = folder_.path();
  for (int tries = 0; tries < 20; ++tries) {
    port_ = 20000 + static_cast<int>((static_cast<unsigned>(::getpid()) * 7 +
                                      static_cast<unsigned>(tries) * 1009) %
                                     12000);
    folder_.write("sshd_config",
                  fmt::format("ListenAddress 0.0.0.0:{}\nHostKey {}/host_key\n"
                              "AuthorizedKeysFile {}/authorized\nPidFile none\nUsePAM no\n"
                              "StrictModes no\nPasswordAuthentication no\n"
                              "KbdInteractiveAuthentication no\nMaxStartups 200\n{}",
                              port_, path, path, sshd_more_));
    sshd_ = std::make_unique<Process>(
        std::vector<std::string>{kSshd, "-D", "-e", "-f", path + "/sshd_config"});
    if (sshd_->waitForOutput("Server listening", std::chrono::seconds(10))) break;
  }
  ASSERT_TRUE(sshd_->running()) << sshd_->err();
  folder_.write("ssh_config",
                fmt::format("Host *\n  Port {}\n  IdentityFile {}/id\n  IdentitiesOnly yes\n"
                            "  UserKnownHostsFile {}/known\n  GlobalKnownHostsFile none\n"
                            "  StrictHostKeyChecking accept-new\n",
                            port_, path, path));
}

std::string SshTest::sshJob(int hosts, int steps, int ps, const std::string& top_more) {
  const auto tasks = [](int count) {
    std::string list;
    for (int host = 1; host <= count; ++host)
      list += fmt::format("{}\"127.0.0.{}:auto\"", host == 1 ? "" : ", ", host);
    return list;
  };
  // Two files: the far end has to get both.
  folder_.write("train.yaml",
                fmt::format("model:\n  input: {{shape: [28, 28, 1]}}\n"
                            "  layers: [flatten: , dense: {{units: 10, name: softmax}}]\n"
                            "  loss: sparse_categorical_crossentropy\n  metrics: [accuracy]\n"
                            "data:\n  train: {{format: digits, count: 600}}\n"
                            "  eval: {{format: digits, count: 200}}\n  batch_size: 20\n"
                            "steps: {}\n",
                            steps));
  const std::string ps_line =
      ps == kNoPs ? "" : fmt::format("  ps: [{}]\n", tasks(ps == 0 ? hosts : ps));
  return folder_.write(
      "job.yaml", fmt::format("job: job\nrun_dir: {}/runs/job\ncluster:\n{}  worker: [{}]\n"
                              "launch: {{via: ssh, ssh_config: ssh_config, binary_dir: {}}}\n{}"
                              "train: train.yaml\n",
                              folder_.path(), ps_line, tasks(hosts), agent_folder_, top_more));
}

Process SshTest::start(const std::string& file) {
  return Process(launchCommand(file), {}, folder_.path());
}

std::vector<pid_t> SshTest::pidsOf(const std::string& name, const std::string& words) const {
  std::vector<pid_t> pids;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/proc", ignored)) {
    const std::string pid = entry.path().filename();
    if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream file(entry.path() / "cmdline");
    std::ostringstream text;
    text << file.rdbuf();  // a process that ends meanwhile is no exception here
    std::string line = text.str();
    const std::string program = line.substr(0, line.find('\0'));
    std::replace(line.begin(), line.end(), '\0', ' ');
    if (program.ends_with(name) && line.find(folder_.path()) != std::string::npos &&
        line.find(words) != std::string::npos)
      pids.push_back(static_cast<pid_t>(std::stol(pid)));
  }
  return pids;
}

pid_t SshTest::awaitPid(const std::string& program, const std::string& words) const {
  for (int i = 0; i < 1000; ++i) {
    if (const std::vector<pid_t> pids = pidsOf(program, words); !pids.empty()) return pids.front();
    ::poll(nullptr, 0, 10);
  }
  ADD_FAILURE() << "no process of " << program << " " << words;
  return -1;
}

void SshTest::expectNoTask() const {
  std::string left;
  for (int i = 0; i < 250; ++i) {
    left.clear();
    for (const char* program : {"psd", "workerd", "dtf-agent", "ssh", "dtf-launch"})
      if (!pidsOf(program).empty()) left += std::string(" ") + program;
    if (left.empty()) return;
    ::poll(nullptr, 0, 20);
  }
  ADD_FAILURE() << "these are left:" << left;
}

pid_t SshTest::parentOf(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("PPid:")) return static_cast<pid_t>(std::stol(line.substr(5)));
  return -1;
}

void SshTest::kill9(pid_t pid) {
  ASSERT_GT(pid, 1);
  ASSERT_EQ(::kill(pid, SIGKILL), 0);
}

}  // namespace dtf::testing
