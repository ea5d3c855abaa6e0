#include "launcher/console.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

#include "common/base/file.h"

namespace dtf::launcher {

class ConsoleTest : public ::testing::Test {
 protected:
  ConsoleTest() {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    read_end_ = Fd(ends[0]);
    write_end_ = Fd(ends[1]);
    ::fcntl(read_end_.get(), F_SETFL, O_NONBLOCK);
  }
  std::string read() {
    std::string text;
    char buffer[65536];
    for (ssize_t n; (n = ::read(read_end_.get(), buffer, sizeof buffer)) > 0;)
      text.append(buffer, static_cast<size_t>(n));
    return text;
  }
  Fd read_end_, write_end_;
};

TEST_F(ConsoleTest, StatusLineStaysBelowTheLines) {
  Console console(write_end_.get(), true);
  console.status("step 1");
  EXPECT_EQ(read(), "\r\x1b[Kstep 1");
  console.line("worker/0 | hello");
  EXPECT_EQ(read(), "\r\x1b[Kworker/0 | hello\nstep 1");
  console.status("step 1");
  EXPECT_EQ(read(), "") << "nothing new, nothing drawn";
  console.finish();
  EXPECT_EQ(read(), "\r\x1b[K");
}

TEST_F(ConsoleTest, TheSeverityOfALineIsColored) {
  Console console(write_end_.get(), false, true);
  console.line("10:11:12.345 error event=x", "worker/0 | ");
  EXPECT_EQ(read(), "worker/0 | 10:11:12.345 \x1b[1;31merror\x1b[0m event=x\n");
  console.line("dtf-launch: warning: \x1b[5m");
  EXPECT_EQ(read(), "dtf-launch: \x1b[1;33mwarning\x1b[0m: ?[5m\n") << "and nothing of others'";
}

TEST_F(ConsoleTest, WithoutATerminalThereIsNoStatusLine) {
  Console console(write_end_.get(), false);
  console.status("step 1");
  console.line("a");
  console.finish();
  EXPECT_EQ(read(), "a\n");
}

TEST_F(ConsoleTest, ReaderThatDoesNotReadStopsNothingAndLosesLinesBeyondTheBound) {
  Console console(write_end_.get(), false);
  const std::string line(1000, 'x');
  for (int i = 0; i < 3000; ++i) console.line(line);
  std::string text;
  for (std::string part; !(part = read()).empty(); console.pump()) text += part;
  EXPECT_GT(text.size(), OutputQueue::kBytesMax - 2000);
  EXPECT_LT(text.size(), OutputQueue::kBytesMax + 100000) << "the bound and what the pipe holds";
  console.line("after");
  const std::string rest = read();
  EXPECT_NE(rest.find("lines are not shown"), std::string::npos) << rest;
  EXPECT_NE(rest.find("after\n"), std::string::npos);
}

TEST_F(ConsoleTest, ReaderThatIsGoneEndsTheOutput) {
  ::signal(SIGPIPE, SIG_IGN);
  Console console(write_end_.get(), false);
  read_end_.reset();
  console.line("a");
  console.line("b");
  console.finish();
}

TEST(Color, AutoNeedsATerminalAndHeedsNoColor) {
  EXPECT_TRUE(useColor(ColorMode::kAlways, -1));
  EXPECT_FALSE(useColor(ColorMode::kNever, -1));
  EXPECT_FALSE(useColor(ColorMode::kAuto, -1));
  const Fd terminal(::posix_openpt(O_RDWR | O_NOCTTY));
  if (!terminal.valid()) GTEST_SKIP() << "this host gives no pseudo-terminal";
  ::setenv("TERM", "xterm", 1);
  ::unsetenv("NO_COLOR");
  EXPECT_TRUE(useColor(ColorMode::kAuto, terminal.get()));
  EXPECT_TRUE(canRedraw(terminal.get()));
  ::setenv("TERM", "dumb", 1);
  EXPECT_FALSE(canRedraw(terminal.get()));
  EXPECT_FALSE(useColor(ColorMode::kAuto, terminal.get()));
  ::unsetenv("TERM");
  EXPECT_FALSE(canRedraw(terminal.get())) << "an unknown terminal gets no escape sequences";
  ::setenv("TERM", "xterm", 1);
  ::setenv("NO_COLOR", "1", 1);
  EXPECT_FALSE(useColor(ColorMode::kAuto, terminal.get()));
}

}  // namespace dtf::launcher
