#include "launcher/output_queue.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "common/base/file.h"

namespace dtf::launcher {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class OutputQueueTest : public ::testing::Test {
 protected:
  OutputQueueTest() {
    ::signal(SIGPIPE, SIG_IGN);  // as in dtf-launch
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    reader_ = Fd(ends[0]);
    writer_ = Fd(ends[1]);
  }

  // Returns the bytes in the pipe.
  std::string read() {
    std::string text(1 << 20, '\0');
    const ssize_t n = ::read(reader_.get(), text.data(), text.size());
    text.resize(n > 0 ? static_cast<size_t>(n) : 0);
    return text;
  }
  static std::string numbered(size_t bytes) {
    std::string text;
    for (int i = 0; text.size() < bytes; ++i) text += std::to_string(i) + "\n";
    text.resize(bytes);
    return text;
  }

  Fd reader_;
  Fd writer_;
};

}  // namespace

TEST_F(OutputQueueTest, NothingWaitsForAReaderThatHasStopped) {
  OutputQueue queue(writer_.get());
  const std::string text = numbered(300'000);  // a pipe takes 65 536
  ASSERT_TRUE(queue.push(text));
  EXPECT_FALSE(queue.pump());
  EXPECT_FALSE(queue.pump()) << "a second time nothing more";
  std::string got;
  while (got.size() < text.size()) {
    const std::string part = read();
    ASSERT_FALSE(part.empty());
    got += part;
    queue.pump();
  }
  EXPECT_EQ(got, text) << "all of it, in its order";
  EXPECT_TRUE(queue.pump());
}

TEST_F(OutputQueueTest, WhatHasNoRoomIsLeftOutWhole) {
  OutputQueue queue(writer_.get());
  EXPECT_FALSE(queue.push(std::string(OutputQueue::kBytesMax + 1, 'x')));
  EXPECT_TRUE(queue.push(std::string(OutputQueue::kBytesMax, 'x')));
  EXPECT_FALSE(queue.push("y"));
  queue.pump();
  EXPECT_TRUE(queue.push("y")) << "what was written made room";
}

TEST_F(OutputQueueTest, TheEndGivesUpOnAReaderThatTakesNothing) {
  OutputQueue queue(writer_.get());
  queue.push(numbered(300'000));
  EXPECT_FALSE(queue.finish(milliseconds(1)));
}

TEST_F(OutputQueueTest, TheEndWaitsForASlowReader) {
  OutputQueue queue(writer_.get());
  const std::string text = numbered(300'000);
  queue.push(text);
  std::string got;
  std::thread slow([&] {
    while (got.size() < text.size()) got += read();
  });
  EXPECT_TRUE(queue.finish(seconds(30)));
  slow.join();
  EXPECT_EQ(got, text);
}

TEST_F(OutputQueueTest, AReaderThatHasGoneEndsTheOutput) {
  OutputQueue queue(writer_.get());
  reader_.reset();
  EXPECT_TRUE(queue.push("a"));
  EXPECT_TRUE(queue.pump()) << "nothing is left to write";
  EXPECT_FALSE(queue.push("b"));
  EXPECT_FALSE(queue.finish(seconds(1))) << "it did not arrive";
}

}  // namespace dtf::launcher
