#include "common/base/print.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>

#include "common/base/error.h"
#include "common/base/file.h"
#include "tests/support/process.h"

namespace dtf {
namespace {

// Redirects stdout during its lifetime, as the shell's `> FILE` does.
class Redirected {
 public:
  explicit Redirected(const char* file) : before_(::dup(STDOUT_FILENO)) {
    std::fflush(stdout);
    const Fd target(::open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    EXPECT_GE(::dup2(target.get(), STDOUT_FILENO), 0);
  }
  ~Redirected() {
    std::fflush(stdout);
    std::clearerr(stdout);
    ::dup2(before_.get(), STDOUT_FILENO);
  }

 private:
  const Fd before_;
};

TEST(Print, TheTextIsThereAtOnce) {
  const testing::TemporaryFolder folder;
  const Redirected to_file((folder.path() + "/out").c_str());
  print("done\n");
  EXPECT_EQ(folder.read("out"), "done\n") << "a process that is killed now has said it";
}

TEST(Print, AFullDiskIsNoSuccess) {
  ErrorCode code = ErrorCode::kInternal;
  {
    const Redirected to_full("/dev/full");
    try {
      print("done\n");
    } catch (const Error& error) {
      code = error.code();
    }
  }
  EXPECT_EQ(code, ErrorCode::kCannotWrite);
}

}  // namespace
}  // namespace dtf
