#include "common/ps/step_agreement.h"

#include <gtest/gtest.h>

namespace dtf::ps {
namespace {

constexpr cluster::ReplicationSpec kSync{cluster::ReplicationSpec::Mode::kSync, 3, 3};
constexpr cluster::ReplicationSpec kAsync{};
using Asked = std::vector<std::optional<uint64_t>>;

StepState at(uint64_t step, uint32_t batch = 0) {
  StepState state;
  state.global_step = state.next_step = step;
  state.next_batch = batch;
  return state;
}

TEST(StepAgreement, AsyncFollowsTheFirstPs) {
  const Agreement agreement = agree(kAsync, std::vector{at(5), at(9)}, Asked(2));
  EXPECT_TRUE(agreement.again.empty());
  EXPECT_EQ(agreement.state.next_step, 5u);
}

TEST(StepAgreement, TheEarliestMissingBatchIsNext) {
  const Agreement agreement = agree(kSync, std::vector{at(5, 2), at(5, 1)}, Asked(2));
  EXPECT_TRUE(agreement.again.empty());
  EXPECT_EQ(agreement.state.next_batch, 1u);
}

TEST(StepAgreement, ThoseAheadAreAskedForTheStepBefore) {
  const Agreement agreement = agree(kSync, std::vector{at(6), at(5), at(6)}, Asked(3));
  ASSERT_EQ(agreement.again.size(), 2u);
  EXPECT_EQ(agreement.again[0].ps_task, 0u);
  EXPECT_EQ(agreement.again[0].wanted_step, 5u);
  EXPECT_EQ(agreement.again[1].ps_task, 2u);
}

TEST(StepAgreement, WhereTheStepBeforeIsGoneTheOthersAreAskedAgain) {
  const Agreement agreement = agree(kSync, std::vector{at(6), at(5)}, Asked{5, std::nullopt});
  ASSERT_EQ(agreement.again.size(), 1u);
  EXPECT_EQ(agreement.again[0].ps_task, 1u);
  EXPECT_EQ(agreement.again[0].wanted_step, std::nullopt);
}

}  // namespace
}  // namespace dtf::ps
