// Readers beside the training, over the calls of PsReader. tests/conformance/job_reader_test.cc
// reads jobs that train.

#include "common/host/reader_service.h"

#include <gmock/gmock.h>

#include <optional>

#include "common/wire/arena_codec.h"
#include "tests/unit/host/ps_world.h"

namespace dtf::host {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kReadElements = 32;

class ReaderServiceTest : public ::testing::Test {
 protected:
  ~ReaderServiceTest() noexcept override {}

  void declare() {
    arena::ModelDeclaration model;
    model.layout = arena::makeLayout({{"v", Shape{kReadElements}, {{0, 0, kReadElements}}}}, 1);
    model.steps = 10;
    world_.shard().workers().join(0, kOne);
    world_.shard().workers().declare(0, kOne, model);
  }
  void initialise() { world_.shard().initialise(0, kOne, std::vector<float>(kReadElements, 0.5F)); }

  // Returns the refusal, or why there is no reader yet; empty if reader_ is open.
  std::string open(const char* job = "still") {
    auto request = bulk_->bootstrap().castAs<schema::PsDataGate>().readRequest();
    request.setJob(job);
    std::string not_yet;
    const std::string refused = world_.refusal(request.send().then([&](auto&& response) {
      not_yet = response.getNotYet();
      if (not_yet.empty()) reader_ = response.getReader();
    }));
    return refused + not_yet;
  }
  std::string capture() {
    auto request = reader_->captureRequest();
    request.setNewest(true);
    return world_.refusal(request.send().then([&](auto&& response) {
      EXPECT_TRUE(response.getCaptured());
      step_ = response.getStep();
    }));
  }
  std::string read(uint64_t offset, uint64_t count) {
    auto request = reader_->valuesRequest();
    request.setOffset(offset);
    request.setCount(count);
    return world_.refusal(request.send().then([&](auto&& response) {
      Buffer assembled;
      const auto values = wire::readArena(response.getValues(), count, assembled);
      values_.assign(values.begin(), values.end());
    }));
  }

  PsWorld world_{1, 1};
  kj::Own<net::RpcConnection> bulk_ = world_.bulkClient();
  std::optional<schema::PsReader::Client> reader_;
  uint64_t step_ = 99;
  std::vector<float> values_;
};

TEST_F(ReaderServiceTest, AModelIsReadOnceItHasValues) {
  EXPECT_EQ(open(), "no worker has declared the model to ps/0 yet: the job has not begun");
  declare();
  ASSERT_EQ(open(), "");
  EXPECT_THAT(capture(), HasSubstr("ps/0"));
  initialise();
  ASSERT_EQ(capture(), "");
  EXPECT_EQ(step_, 0u);
  ASSERT_EQ(read(16, 16), "");
  EXPECT_EQ(values_, std::vector<float>(16, 0.5F));
}

TEST_F(ReaderServiceTest, AReaderOfAnotherJobIsRefused) {
  declare();
  EXPECT_EQ(open("other"), "ps/0 belongs to the job 'still', not 'other'");
  EXPECT_EQ(open(""), "");
}

TEST_F(ReaderServiceTest, NoElementsBeyondTheShardAreRead) {
  declare();
  initialise();
  ASSERT_EQ(open(), "");
  ASSERT_EQ(capture(), "");
  const std::pair<uint64_t, uint64_t> wrong[] = {
      {0, 48}, {32, 16}, {48, 0}, {1, 16}, {0, 1}, {16, UINT64_MAX - 15}, {UINT64_MAX - 15, 16}};
  for (const auto& [offset, count] : wrong)
    EXPECT_THAT(read(offset, count), HasSubstr("does not fit a shard of 32")) << offset;
  EXPECT_EQ(read(0, 32), "");
}

TEST_F(ReaderServiceTest, AVersionIsKeptForAMinuteAfterTheLastCall) {
  declare();
  initialise();
  ASSERT_EQ(open(), "");
  EXPECT_THAT(read(0, 16), HasSubstr("no parameters are kept for this reader"));
  ASSERT_EQ(capture(), "");
  for (int i = 0; i < 3; ++i) {
    world_.loop.live(kCaptureMax / 2);
    EXPECT_EQ(read(0, 16), "");
  }
  world_.loop.live(kCaptureMax + std::chrono::seconds(1));
  EXPECT_THAT(read(0, 16), HasSubstr("made no call for 60 s"));
  EXPECT_EQ(capture(), "") << "the reader stays";
}

TEST_F(ReaderServiceTest, AConnectionHasOneReader) {
  declare();
  ASSERT_EQ(open(), "");
  EXPECT_EQ(open(), "this connection has a reader already");
}

TEST_F(ReaderServiceTest, AnIdleReaderLeavesItsPlaceToOthers) {
  declare();
  initialise();
  std::vector<kj::Own<net::RpcConnection>> idle;
  std::vector<schema::PsReader::Client> readers;
  for (uint32_t i = 0; i < shard::kReadersMax; ++i) {
    ASSERT_EQ(open(), "");
    ASSERT_EQ(capture(), "");
    readers.push_back(kj::mv(*reader_));
    idle.push_back(kj::mv(bulk_));
    bulk_ = world_.bulkClient();
  }
  EXPECT_THAT(open(), HasSubstr("already has 16 readers"));
  world_.loop.live(kCaptureMax + std::chrono::seconds(1));
  bulk_ = world_.bulkClient();
  EXPECT_EQ(open(), "");
  EXPECT_EQ(capture(), "");
}

TEST_F(ReaderServiceTest, AReaderEndsWithItsConnection) {
  declare();
  initialise();
  for (uint32_t i = 0; i < 2 * shard::kReadersMax; ++i) {
    ASSERT_EQ(open(), "");
    ASSERT_EQ(capture(), "");
    reader_.reset();
    bulk_ = world_.bulkClient();
    world_.loop.settle();
  }
}

}  // namespace
}  // namespace dtf::host
