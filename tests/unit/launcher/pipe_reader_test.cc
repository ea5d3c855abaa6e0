#include "launcher/pipe_reader.h"

#include <algorithm>

#include "tests/unit/launcher/loop_fixture.h"

namespace dtf::launcher {
namespace {

class PipeReaderTest : public ::testing::Test {
 protected:
  PipeReader::OnBytes collect() {
    return [this](std::string_view bytes) {
      got_ += bytes;
      longest_ = std::max(longest_, bytes.size());
    };
  }
  boost::asio::io_context io_;
  Pipe pipe_;
  std::string got_;
  size_t longest_ = 0;
};

TEST_F(PipeReaderTest, GivesWhatComesUntilTheWriterHasGone) {
  PipeReader reader(io_, std::move(pipe_.read), collect());
  pipe_.send("one ");
  runUntil(io_, [&] { return got_ == "one "; });
  pipe_.send("two");
  pipe_.write = Fd();
  io_.restart();
  io_.run();  // ends with the pipe
  EXPECT_EQ(got_, "one two");
}

TEST_F(PipeReaderTest, GivesNoMoreThan64KiBAtOnce) {
  ASSERT_GE(::fcntl(pipe_.write.get(), F_SETPIPE_SZ, 1 << 18), 1 << 18);
  pipe_.send(std::string(150'000, 'x'));
  PipeReader reader(io_, std::move(pipe_.read), collect());
  runUntil(io_, [&] { return got_.size() == 150'000; });
  EXPECT_EQ(longest_, 65'536u);
}

// A grandchild may hold the write end for hours.
TEST_F(PipeReaderTest, DrainingTakesWhatIsThereAndWaitsForNobody) {
  PipeReader reader(io_, std::move(pipe_.read), collect());
  pipe_.send("last words");
  reader.drain();
  EXPECT_EQ(got_, "last words");
  reader.drain();
  io_.run();
  EXPECT_EQ(got_, "last words");
}

}  // namespace
}  // namespace dtf::launcher
