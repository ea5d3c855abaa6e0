#include "launcher/output.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "common/base/file.h"
#include "launcher/output_queue.h"
#include "tests/support/process.h"

namespace dtf::launcher {

TEST(PrintBounded, AReaderThatHasStoppedDoesNotKeepTheProcess) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const Fd read_end(ends[0]), write_end(ends[1]);
  const std::string more_than_a_pipe_holds(size_t{1} << 21, 'x');
  EXPECT_FALSE(
      printBounded(write_end.get(), more_than_a_pipe_holds, std::chrono::milliseconds(50)));
}

TEST(PrintBounded, TextBeyondTheBoundOfTheQueueIsWrittenWhole) {
  const testing::TemporaryFolder folder;
  const std::string text(OutputQueue::kBytesMax * 2 + 7, 'x');
  const Fd file(::open((folder.path() + "/out").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_TRUE(file.valid());
  EXPECT_TRUE(printBounded(file.get(), text));
  EXPECT_TRUE(folder.read("out") == text);
}

TEST(PrintBounded, AFullDiskIsNoSuccess) {
  const Fd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  ASSERT_TRUE(full.valid());
  EXPECT_FALSE(printBounded(full.get(), "a"));
}

}  // namespace dtf::launcher
