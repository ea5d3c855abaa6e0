#include "launcher/standard_input.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include "common/base/file.h"
#include "tests/support/process.h"
#include "tests/unit/launcher/given_input.h"

namespace dtf::launcher {
namespace {

TEST(StandardInput, HasTwoNames) {
  EXPECT_TRUE(isStandardInput("-"));
  EXPECT_TRUE(isStandardInput("/dev/stdin"));
  EXPECT_FALSE(isStandardInput("./-"));
}

TEST(StandardInput, APipeCanBeReadAgainAndAgain) {
  const GivenInput input("a,b\n1,2\n");
  const std::filesystem::path file = wholeStandardInput();
  for (int i = 0; i < 2; ++i) EXPECT_EQ(readFile(file, 100), "a,b\n1,2\n");
  EXPECT_EQ(readFile(wholeStandardInput(), 100), "") << "that was all of it";
}

TEST(StandardInput, AnEmptyPipeIsAnEmptyFile) {
  const GivenInput input("");
  EXPECT_EQ(readFile(wholeStandardInput(), 100), "");
}

TEST(StandardInput, ARedirectedFileIsReadFromThePlaceThatAShellHasReached) {
  const GivenInput restored("");
  const testing::TemporaryFolder folder;
  const Fd file(::open(folder.write("t.csv", "a,b\n1,2\n").c_str(), O_RDONLY));
  ::dup2(file.get(), STDIN_FILENO);
  EXPECT_EQ(readFile(wholeStandardInput(), 100), "a,b\n1,2\n");
  ::lseek(STDIN_FILENO, 4, SEEK_SET);
  EXPECT_EQ(readFile(wholeStandardInput(), 100), "1,2\n");
}

}  // namespace
}  // namespace dtf::launcher
