#include "common/base/stderr_sink.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "common/base/log.h"

// stderr of this process is a pipe during a test; only the test reads it.

namespace dtf {

class StderrSinkTest : public ::testing::Test {
 protected:
  StderrSinkTest() {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    reader_ = Fd(ends[0]);
    before_ = Fd(::dup(STDERR_FILENO));
    ::dup2(ends[1], STDERR_FILENO);
    ::close(ends[1]);
    ::fcntl(reader_.get(), F_SETFL, O_NONBLOCK);
    capacity_ = static_cast<size_t>(::fcntl(STDERR_FILENO, F_GETPIPE_SZ));
  }
  ~StderrSinkTest() override { ::dup2(before_.get(), STDERR_FILENO); }

  std::string readAll() const {
    std::string text;
    char buffer[4096];
    for (ssize_t n; (n = ::read(reader_.get(), buffer, sizeof buffer)) > 0;)
      text.append(buffer, static_cast<size_t>(n));
    return text;
  }

  Fd reader_;
  size_t capacity_ = 0;

 private:
  Fd before_;
};

const std::string kLine(99, 'x');

TEST_F(StderrSinkTest, DropsAndCountsWhatAFullPipeDoesNotTake) {
  StderrSink sink;
  size_t written = 0;
  while (sink.write(kLine + "\n")) ++written;
  EXPECT_LE(written * 100, capacity_);
  EXPECT_GE(written * 100, capacity_ / 2);
  EXPECT_EQ(sink.dropped(), 1u);
  EXPECT_FALSE(sink.write("two\nlines\n"));
  EXPECT_EQ(sink.dropped(), 3u);
  readAll();
  EXPECT_TRUE(sink.write("room again\n"));
  EXPECT_TRUE(readAll().ends_with("room again\n"));
}

TEST_F(StderrSinkTest, ATextThatIsCutGetsItsEndBeforeTheNextLine) {
  StderrSink sink;
  EXPECT_FALSE(sink.write(std::string(2 * capacity_, 'y') + "\n"));
  const std::string cut = readAll();
  EXPECT_EQ(cut.find('\n'), std::string::npos);
  EXPECT_TRUE(sink.write("whole\n"));
  EXPECT_EQ(readAll(), "\nwhole\n");
}

TEST_F(StderrSinkTest, LeavesTheSharedDescriptionBlockingAsItWas) {
  StderrSink sink;
  EXPECT_TRUE(sink.write("line\n"));
  EXPECT_EQ(::fcntl(STDERR_FILENO, F_GETFL) & O_NONBLOCK, 0)
      << "the shell that shares the terminal would get EAGAIN";
}

TEST_F(StderrSinkTest, TheLogSaysHowManyLinesAreMissingOnceItIsReadAgain) {
  log::init("worker/1", log::Level::kInfo);
  for (size_t i = 0; i < capacity_ / 50; ++i) log::info("event=filler text={}", kLine);
  const std::string filled = readAll();
  log::info("event=after");
  const std::string text = readAll();
  EXPECT_NE(text.find(" warning task=worker/1 event=log_dropped lines="), std::string::npos)
      << text;
  EXPECT_NE(text.find(" info task=worker/1 event=after\n"), std::string::npos) << text;
  log::info("event=more");
  EXPECT_EQ(readAll().find("log_dropped"), std::string::npos) << "said once";
}

TEST_F(StderrSinkTest, AnErrorWaitsForRoomAndOthersDoNotWaitForTheError) {
  log::init("worker/1", log::Level::kInfo);
  for (size_t i = 0; i < capacity_ / 50; ++i) log::info("event=filler text={}", kLine);
  std::thread failing([] { log::error("event=failed"); });
  log::info("event=while_the_error_waits");
  std::string text = readAll();
  failing.join();
  text += readAll();
  EXPECT_NE(text.find(" error task=worker/1 event=failed\n"), std::string::npos);
}

TEST(StderrSink, AppendsToAFile) {
  ::testing::internal::CaptureStderr();
  StderrSink sink;
  EXPECT_TRUE(sink.write("first\n"));
  EXPECT_EQ(::write(STDERR_FILENO, "other\n", 6), 6);
  EXPECT_TRUE(sink.write("second\n"));
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "first\nother\nsecond\n");
}

}  // namespace dtf
