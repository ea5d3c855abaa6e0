// A job's private keys appear in no argument, no environment and no file but the key files. No core
// file is left.

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/e2e/ssh_fixture.h"

namespace dtf::testing {

namespace fs = std::filesystem;

using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::chrono::seconds kSecretsPatience{60};

class SecretsTest : public SshTest {
 protected:
  // Where no core files are allowed, as by default, it takes root to see that they are forbidden.
  void SetUp() override {
    const rlimit any{RLIM_INFINITY, RLIM_INFINITY};
    (void)!::setrlimit(RLIMIT_CORE, &any);
  }

  static std::string contentOf(const fs::path& path) {
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }

  // Each line of each private key, the CA's too: 64 letters, or the rest in the last line.
  std::vector<std::string> secrets() const {
    std::vector<std::string> lines;
    for (const auto& entry : fs::directory_iterator(folder_.path() + "/keys")) {
      std::istringstream text(contentOf(entry.path()));
      bool is_private = false;
      for (std::string line; std::getline(text, line);) {
        if (line.find("-----") != std::string::npos)
          is_private = line.find("BEGIN PRIVATE KEY") != std::string::npos;
        else if (is_private)
          lines.push_back(line);
      }
    }
    return lines;
  }

  // The `places` that contain a secret.
  std::vector<std::string> thatTell(const std::vector<fs::path>& places) const {
    const std::vector<std::string> lines = secrets();
    std::vector<std::string> telling;
    for (const fs::path& place : places) {
      const std::string text = contentOf(place);
      for (const std::string& line : lines)
        if (text.find(line) != std::string::npos) {
          telling.push_back(place);
          break;
        }
    }
    return telling;
  }

  // Arguments and environment of the processes of this test.
  std::vector<fs::path> processes() const {
    std::vector<fs::path> places;
    for (const std::string& process : leftovers())
      for (const char* name : {"cmdline", "environ"})
        places.push_back(fs::path("/proc") / std::to_string(std::stoi(process)) / name);
    return places;
  }

  // All files that a job has written, except the keys that each host receives.
  std::vector<fs::path> written() const {
    std::vector<fs::path> places;
    for (const auto& entry : fs::recursive_directory_iterator(folder_.path() + "/runs"))
      if (entry.is_regular_file() && entry.path().extension() != ".pem")
        places.push_back(entry.path());
    return places;
  }

  void expectNoCoreFileOf(const std::string& program) const {
    std::istringstream limits(
        contentOf("/proc/" + std::to_string(awaitPid("/" + program)) + "/limits"));
    std::string line;
    while (std::getline(limits, line) && !line.starts_with("Max core file size")) continue;
    std::istringstream words(line.substr(std::min(line.size(), size_t{26})));
    std::string soft, hard;
    words >> soft >> hard;
    EXPECT_THAT(soft + " " + hard, AnyOf("0 0", "1 1")) << program << ": " << line;
  }

  // `file` is of a job that trains until it is stopped, with `keys: keys`.
  void expectNothingTold(const std::string& file) {
    const ProcessResult made = runProcess(
        {binary("dtf-launch"), "keys", "init", folder_.path() + "/keys", "--cluster", file});
    ASSERT_EQ(made.exit_code, 0) << made.err;
    ASSERT_GT(secrets().size(), 6u);
    Process launcher(launchCommand(file, {"--set", "metrics.port=auto"}), {}, folder_.path());
    ASSERT_TRUE(launcher.waitForOutput("tasks are ready", kSecretsPatience)) << launcher.err();
    ASSERT_TRUE(launcher.waitForOutput("step ", kSecretsPatience)) << launcher.err();
    EXPECT_GE(processes().size(), 6u);
    EXPECT_THAT(thatTell(processes()), IsEmpty());
    for (const char* program : {"psd", "workerd", "dtf-launch"}) expectNoCoreFileOf(program);
    {
      Process careless({"sh", "-c", "echo up; exec sleep 60"}, {{"KEY", secrets().back()}});
      ASSERT_TRUE(careless.waitForOutput("up", kSecretsPatience));
      EXPECT_THAT(thatTell({"/proc/" + std::to_string(careless.pid()) + "/environ"}),
                  Contains(HasSubstr("environ")))
          << "it would have been found";
    }
    launcher.signal(SIGTERM);
    const ProcessResult result = launcher.wait(kSecretsPatience);
    folder_.write("runs/said", result.out + result.err);
    EXPECT_GT(written().size(), 3u);
    EXPECT_THAT(thatTell(written()), IsEmpty());
  }
};

TEST_F(SecretsTest, AJobTellsItsKeysToNobody) {
  ClusterOptions options;
  options.steps = 100'000'000;
  options.top_more = "keys: keys\n";
  expectNothingTold(writeCluster(options));
}

TEST_F(SecretsTest, NorOverSsh) {
  SshTest::SetUp();
  if (IsSkipped() || HasFatalFailure()) return;
  expectNothingTold(sshJob(2, 100'000'000, 0, "keys: keys\n"));
}

}  // namespace dtf::testing
