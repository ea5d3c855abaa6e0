// scripts/fetch-mnist.sh without a network, on local files (--from).

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <string>

#include "tests/unit/data/idx_files.h"

namespace dtf::data {
namespace {

namespace fs = std::filesystem;

struct Result {
  int exit_code = -1;
  std::string said;
};

Result fetch(const TemporaryFolder& scratch, const std::string& arguments) {
  const fs::path said = scratch.path() / "said";
  const std::string script = std::string(DTF_SOURCE_ROOT) + "/scripts/fetch-mnist.sh";
  const int status =
      std::system(("'" + script + "' " + arguments + " 2>'" + said.string() + "'").c_str());
  std::ifstream in(said);
  return {WEXITSTATUS(status), {std::istreambuf_iterator<char>(in), {}}};
}

TEST(FetchMnist, CopiesVerifiesAndDoesNothingTheSecondTime) {
  const auto mnist = findMnist(DTF_SOURCE_ROOT);
  if (!mnist) GTEST_SKIP() << "no MNIST: set DTF_MNIST_DIR, or run scripts/fetch-mnist.sh";
  const TemporaryFolder scratch;
  const fs::path target = scratch.path() / "a folder" / "mnist";
  const std::string arguments = "--from '" + mnist->string() + "' '" + target.string() + "'";
  const Result first = fetch(scratch, arguments);
  EXPECT_EQ(first.exit_code, 0) << first.said;
  EXPECT_NE(first.said.find("t10k-labels-idx1-ubyte.gz: verified"), std::string::npos)
      << first.said;
  const Result second = fetch(scratch, arguments);
  EXPECT_EQ(second.exit_code, 0);
  EXPECT_EQ(second.said.find("verified"), std::string::npos) << second.said;
  EXPECT_NE(second.said.find("t10k-labels-idx1-ubyte.gz: already there"), std::string::npos);
  EXPECT_EQ(std::distance(fs::directory_iterator(target), {}), 4);
}

TEST(FetchMnist, RefusesAFileThatIsNotTheOriginal) {
  const TemporaryFolder scratch;
  scratch.write("train-images-idx3-ubyte.gz", gzipped("something else"));
  const fs::path target = scratch.path() / "target";
  const Result result =
      fetch(scratch, "--from '" + scratch.path().string() + "' '" + target.string() + "'");
  EXPECT_EQ(result.exit_code, 65) << result.said;
  EXPECT_NE(result.said.find("not the original: expected MD5 6bbc9ace"), std::string::npos)
      << result.said;
  EXPECT_TRUE(fs::is_empty(target));
}

TEST(FetchMnist, SaysWhatIsMissingAndHowToUseIt) {
  const TemporaryFolder scratch;
  const std::string target = " '" + (scratch.path() / "target").string() + "'";
  EXPECT_EQ(
      fetch(scratch, "--from '" + (scratch.path() / "nowhere").string() + "'" + target).exit_code,
      69);
  EXPECT_EQ(fetch(scratch, "--frm x" + target).exit_code, 2);
  EXPECT_EQ(fetch(scratch, "a b").exit_code, 2);
}

}  // namespace
}  // namespace dtf::data
