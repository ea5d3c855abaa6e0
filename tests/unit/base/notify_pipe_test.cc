#include "common/base/notify_pipe.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>
#include <vector>

#include "common/base/file.h"
#include "common/base/thread.h"

namespace dtf {

using std::chrono::milliseconds;
using std::chrono::seconds;

class NotifyPipeTest : public ::testing::Test {
 protected:
  NotifyPipeTest() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::pipe(ends), 0);
    read_ = Fd(ends[0]);
    write_ = Fd(ends[1]);
  }

  // Closes the writing end and returns all lines that are in the pipe.
  std::vector<std::string> lines() {
    write_.reset();
    std::string text;
    char buffer[4096];
    for (ssize_t n = 0; (n = ::read(read_.get(), buffer, sizeof buffer)) > 0;)
      text.append(buffer, static_cast<size_t>(n));
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
  }

  static std::string line(char fill, size_t bytes) { return std::string(bytes - 1, fill) + "\n"; }

  Fd read_;
  Fd write_;
};

TEST_F(NotifyPipeTest, ProgressThatNobodyReadsLeavesRoomForTheResult) {
  NotifyPipe pipe(write_.get(), seconds(0));
  int written = 0;
  while (pipe.writeIfRoom(line('p', 150))) ++written;
  EXPECT_GT(written, 10);
  EXPECT_TRUE(pipe.write(line('r', 20'000))) << "at once: the patience is 0";
  const std::vector<std::string> all = lines();
  ASSERT_EQ(all.size(), static_cast<size_t>(written) + 1);
  EXPECT_EQ(all.back(), std::string(19'999, 'r'));
}

TEST_F(NotifyPipeTest, ALineLargerThanThePipeArrivesWholeOnceItIsRead) {
  NotifyPipe pipe(write_.get(), seconds(60));
  bool whole = false;
  Thread writer("writer", [&] {
    whole = pipe.write(line('a', 300'000)) && pipe.write(line('b', 10));
    write_.reset();
  });
  std::string text;
  char buffer[4096];
  for (ssize_t n = 0; (n = ::read(read_.get(), buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<size_t>(n));
  writer.join();
  EXPECT_TRUE(whole);
  EXPECT_EQ(text, line('a', 300'000) + line('b', 10));
}

TEST_F(NotifyPipeTest, LinesOfSeveralThreadsDoNotMix) {
  NotifyPipe pipe(write_.get(), seconds(60));
  std::vector<Thread> writers;
  for (const char name : {'x', 'y', 'z'})
    writers.emplace_back("writer", [&pipe, name] {
      for (int i = 0; i < 20; ++i) EXPECT_TRUE(pipe.write(line(name, 2 * PIPE_BUF)));
    });
  Thread closer("closer", [&] {
    for (Thread& writer : writers) writer.join();
    write_.reset();
  });
  std::string text;
  char buffer[1000];
  for (ssize_t n = 0; (n = ::read(read_.get(), buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<size_t>(n));
  closer.join();
  ASSERT_EQ(text.size(), size_t{60} * 2 * PIPE_BUF);
  for (size_t at = 0; at < text.size(); at += 2 * PIPE_BUF)
    ASSERT_EQ(text.substr(at, 2 * PIPE_BUF), line(text[at], 2 * PIPE_BUF)) << at;
}

// A reader that comes back must not join the cut piece and the next line.
TEST_F(NotifyPipeTest, ALineCutByTheDeadlineDoesNotSpoilTheNext) {
  NotifyPipe pipe(write_.get(), milliseconds(1));
  EXPECT_FALSE(pipe.write(line('a', 300'000))) << "nobody reads";
  EXPECT_FALSE(pipe.writeIfRoom(line('p', 10)));
  std::vector<char> buffer(200'000);
  ASSERT_GT(::read(read_.get(), buffer.data(), buffer.size()), 0);
  EXPECT_FALSE(pipe.writeIfRoom(line('p', 10))) << "it would be glued to the piece";
  EXPECT_TRUE(pipe.write(line('b', 10)));
  EXPECT_TRUE(pipe.writeIfRoom(line('p', 10)));
  const std::vector<std::string> all = lines();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0], "") << "the end of the piece";
  EXPECT_EQ(all[1], std::string(9, 'b'));
  EXPECT_EQ(all[2], std::string(9, 'p'));
}

TEST_F(NotifyPipeTest, ALongLineIsNeverWrittenInPart) {
  NotifyPipe pipe(write_.get());
  EXPECT_FALSE(pipe.writeIfRoom(line('p', PIPE_BUF + 1)));
  EXPECT_TRUE(pipe.writeIfRoom(line('p', PIPE_BUF)));
  EXPECT_EQ(lines().size(), 1u);
}

}  // namespace dtf
