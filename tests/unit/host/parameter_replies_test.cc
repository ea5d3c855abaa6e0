#include "common/host/parameter_replies.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/host/ps_world.h"

namespace dtf::host {
namespace {

// 2048 dense elements, and a table of 8 x 2 behind them.
constexpr uint64_t kDense = 2048, kRows = 8, kTable = 2 * kRows;

class ParameterRepliesTest : public ::testing::Test {
 protected:
  using Dtype = cluster::ReplicationSpec::TransferDtype;
  using Version = std::shared_ptr<const arena::ParameterVersion>;

  ~ParameterRepliesTest() noexcept override {}

  ParameterReplies& begin(Dtype dtype) {
    arena::ModelDeclaration model;
    model.layout =
        arena::makeLayout({{"dense", Shape{kDense}, {{0, 0, kDense}}},
                           {"table", Shape{kRows, 2}, {{0, 0, kTable}}, std::nullopt, true}},
                          1);
    model.steps = 10;
    model.replication.transfer_dtype = dtype;
    auto control = world_.hello(*connection_, 0, kOne);
    auto declare = control.declareRequest();
    wire::encodeModel(model, declare.initModel());
    EXPECT_EQ(world_.refusal(declare.send().ignoreResult()), "");
    elements_ = model.layout.shards[0].elements;
    pool_.emplace(elements_, 2);
    return replies_.emplace(world_.server().host(), 0, 0);
  }
  Version parameters(float value) {
    const std::shared_ptr<arena::ParameterVersion> made = pool_->acquire(0);
    std::fill_n(made->mutableData(), elements_, value);
    return made;
  }
  static uint64_t bytesOf(const ReplyParts& reply) {
    uint64_t bytes = 0;
    for (const wire::ArenaPart& part : reply.parts) bytes += part.bytes.size();
    return bytes;
  }

  PsWorld world_{1, 1};
  kj::Own<net::RpcConnection> connection_ = world_.client();
  std::optional<arena::VersionPool> pool_;
  uint64_t elements_ = 0;
  std::optional<ParameterReplies> replies_;
  const arena::RowSet two_rows_{{2}, {1, 5}};
};

TEST_F(ParameterRepliesTest, OfFloat32AreSentFromTheirMemory) {
  ParameterReplies& replies = begin(Dtype::kFloat32);
  const Version version = parameters(3);
  const ReplyParts all = replies.of(version, {});
  ASSERT_EQ(all.parts.size(), 1u);
  EXPECT_EQ(static_cast<const void*>(all.parts[0].bytes.data()), version->data());
  EXPECT_EQ(bytesOf(all), elements_ * sizeof(float));
  EXPECT_EQ(all.base, 0u);
  EXPECT_EQ(replies.of(version, {.rows = two_rows_}).parts.size(), 2u);
}

// Dense elements are changes wherever the rows of the table come from.
TEST_F(ParameterRepliesTest, OfALossyJobAreChangesOfTheBaseThatTheCallNames) {
  ParameterReplies& replies = begin(Dtype::kInt8);
  const ReplyParts first = replies.of(parameters(1), {});
  EXPECT_FALSE(first.is_changed);
  EXPECT_EQ(bytesOf(first), elements_ * sizeof(float));
  const ReplyParts rows = replies.of(parameters(2), {.rows = two_rows_, .base = first.base});
  EXPECT_TRUE(rows.is_changed);
  EXPECT_NE(rows.base, first.base);
  EXPECT_LT(bytesOf(rows), kDense * sizeof(float) / 3);
  const ReplyParts whole = replies.of(parameters(3), {.base = rows.base});
  EXPECT_TRUE(whole.is_changed);
  ASSERT_EQ(whole.parts.size(), 2u);
  EXPECT_EQ(whole.parts[1].bytes.size(), (elements_ - kDense) * sizeof(float)) << "all rows";
  const ReplyParts unknown =
      replies.of(parameters(4), {.rows = two_rows_, .base = first.base + 99});
  EXPECT_FALSE(unknown.is_changed);
  EXPECT_EQ(unknown.parts[0].bytes.size(), kDense * sizeof(float));
}

TEST_F(ParameterRepliesTest, ExactOnesAreFloat32AndNoBase) {
  ParameterReplies& replies = begin(Dtype::kInt8);
  const ReplyParts first = replies.of(parameters(1), {});
  const ReplyParts exact = replies.of(parameters(2), {.base = first.base, .is_exact = true});
  EXPECT_EQ(bytesOf(exact), elements_ * sizeof(float));
  EXPECT_EQ(exact.base, 0u);
  EXPECT_TRUE(replies.of(parameters(3), {.base = first.base}).is_changed);
}

TEST_F(ParameterRepliesTest, ParametersOfAnotherModelAreRefused) {
  ParameterReplies& replies = begin(Dtype::kFloat32);
  arena::VersionPool other{elements_ + 16, 1};
  EXPECT_THROW(replies.of(other.acquire(0), {}), Error);
}

}  // namespace
}  // namespace dtf::host
