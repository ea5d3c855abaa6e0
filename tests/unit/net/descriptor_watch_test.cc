#include "common/net/descriptor_watch.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>

#include "common/net/reactor.h"

namespace dtf::net {
namespace {

class DescriptorWatchTest : public ::testing::Test {
 protected:
  ~DescriptorWatchTest() noexcept override = default;

  void SetUp() override { ASSERT_EQ(::pipe(ends_), 0); }
  void TearDown() override {
    watch_ = nullptr;
    EXPECT_EQ(::close(ends_[0]), 0) << "the watch has left it open";
    ::close(ends_[1]);
  }
  void write() { ASSERT_EQ(::write(ends_[1], "x", 1), 1); }
  void read() {
    char byte = 0;
    ASSERT_EQ(::read(ends_[0], &byte, 1), 1);
  }
  void runUntil(int calls) {
    while (calls_ < calls) reactor_.ioc.run_one();
  }

  Reactor reactor_;
  ReactorLoop loop_{reactor_};
  int ends_[2] = {-1, -1};
  int calls_ = 0;
  std::unique_ptr<DescriptorWatch> watch_;
};

TEST_F(DescriptorWatchTest, CallsEachTimeThatBytesCome) {
  watch_ = loop_.watch(ends_[0], [this] {
    ++calls_;
    read();
  });
  for (int i = 1; i <= 3; ++i) {
    write();
    runUntil(i);
  }
  EXPECT_EQ(calls_, 3);
}

TEST_F(DescriptorWatchTest, CallsForBytesThatWereThereBefore) {
  write();
  watch_ = watchDescriptor(reactor_.port, ends_[0], [this] {
    ++calls_;
    read();
  });
  runUntil(1);
  EXPECT_EQ(calls_, 1);
}

TEST_F(DescriptorWatchTest, MayEndInItsOwnCallAndThenCallsNoMore) {
  watch_ = loop_.watch(ends_[0], [this] {
    ++calls_;
    watch_ = nullptr;
  });
  write();
  runUntil(1);
  while (reactor_.ioc.poll_one() > 0) {
  }
  EXPECT_EQ(calls_, 1);
}

}  // namespace
}  // namespace dtf::net
