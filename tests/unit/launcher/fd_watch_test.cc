#include "launcher/fd_watch.h"

#include "common/base/error.h"
#include "tests/unit/launcher/loop_fixture.h"

namespace dtf::launcher {
namespace {

TEST(FdWatch, CallsAgainWhileTheDescriptorIsReadable) {
  boost::asio::io_context io;
  const Pipe pipe;
  int calls = 0;
  char byte = 0;
  const FdWatch watch(io, Fd(::dup(pipe.read.get())), [&] {
    ++calls;
    EXPECT_EQ(::read(watch.fd(), &byte, 1), 1);
  });
  io.poll();
  EXPECT_EQ(calls, 0) << "there is nothing to read";
  pipe.send("ab");
  runUntil(io, [&] { return calls == 2; });
  EXPECT_EQ(byte, 'b');
  EXPECT_EQ(::read(watch.fd(), &byte, 1), -1) << "it does not block";
}

TEST(FdWatch, TheEndIsReadable) {
  boost::asio::io_context io;
  Pipe pipe;
  int calls = 0;
  FdWatch watch(io, std::move(pipe.read), [&] {
    ++calls;
    watch.close();
  });
  pipe.write = Fd();
  runUntil(io, [&] { return calls > 0; });
  EXPECT_EQ(watch.fd(), -1);
  io.restart();
  io.run();
  EXPECT_EQ(calls, 1) << "it was closed by its own call";
}

TEST(FdWatch, OneThatIsGoneIsNotCalled) {
  boost::asio::io_context io;
  Pipe pipe;
  {
    const FdWatch watch(io, std::move(pipe.read), [] { FAIL() << "it is gone"; });
    pipe.send("x");
  }
  io.run();
}

TEST(FdWatch, ADescriptorThatIsClosedIsNotWatched) {
  boost::asio::io_context io;
  const Pipe pipe;
  const int closed = ::dup(pipe.read.get());
  ASSERT_EQ(::close(closed), 0);
  try {
    const FdWatch watch(io, Fd(closed), [] {});
    FAIL() << "there is nothing to wait for";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInternal);
  }
}

}  // namespace
}  // namespace dtf::launcher
