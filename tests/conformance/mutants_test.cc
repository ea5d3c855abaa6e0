// The suites of sessions find each mistake of mutations.toml: this program runs itself with one
// mistake planted, and some test must fail. A run that hangs counts as found.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>

#include "tests/conformance/mutants.h"
#include "tests/support/process.h"

namespace dtf::sim {
namespace {

constexpr std::string_view kPlant = "--plant=";
constexpr std::chrono::seconds kHangs{20};

// Ends the process at the first failure, with the test's name. The name is stored beforehand, as
// gtest holds its lock while it reports a failure.
class FirstFailure final : public ::testing::EmptyTestEventListener {
  void OnTestStart(const ::testing::TestInfo& test) override {
    name_ = std::string(test.test_suite_name()) + "." + test.name();
  }
  void OnTestPartResult(const ::testing::TestPartResult& result) override {
    if (!result.failed()) return;
    std::printf("found by %s\n", name_.c_str());
    std::fflush(stdout);
    ::_exit(1);
  }
  std::string name_;
};

class SessionMutants : public ::testing::TestWithParam<NamedMutant> {};

TEST_P(SessionMutants, IsFound) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  testing::Process run(
      {self, std::string(kPlant) + GetParam().name, "--gtest_filter=-All/SessionMutants.*"});
  const bool ends = run.waitForOutput("found by ", kHangs);
  if (!ends && run.running()) {
    run.signal(SIGKILL);
    std::printf("%s: hangs\n", GetParam().name);
    return;
  }
  const testing::ProcessResult result = run.wait(kHangs);
  std::printf("%s: %s", GetParam().name,
              result.out.substr(result.out.rfind('\n', result.out.size() - 2) + 1).c_str());
  EXPECT_NE(result.exit_code, 0) << "no test failed";
}

INSTANTIATE_TEST_SUITE_P(All, SessionMutants, ::testing::ValuesIn(kMutants),
                         [](const auto& planted) { return planted.param.name; });

// Plants the mistake that the arguments name; returns false if they name none.
bool plant(int argc, char** argv) {
  for (const std::string_view word : std::vector<std::string_view>(argv, argv + argc)) {
    if (!word.starts_with(kPlant)) continue;
    for (const NamedMutant& each : kMutants)
      if (word.substr(kPlant.size()) == each.name) mutant = each.mutant;
    return true;
  }
  return false;
}

}  // namespace
}  // namespace dtf::sim

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (dtf::sim::plant(argc, argv)) {
    if (dtf::sim::mutant == dtf::sim::Mutant::kNone) return 2;
    ::testing::UnitTest::GetInstance()->listeners().Append(new dtf::sim::FirstFailure);
  }
  return RUN_ALL_TESTS();
}
