#include "common/cluster/spec.h"

#include <gtest/gtest.h>

namespace dtf::cluster {
namespace {

TEST(Spec, ADurabilityReadsAsInTheFile) {
  EXPECT_EQ((DurabilitySpec{Durability::kCheckpoint, 0}.str()), "checkpoint");
  EXPECT_EQ((DurabilitySpec{Durability::kSnapshot, 100}.str()), "snapshot: {every_steps: 100}");
  EXPECT_EQ((DurabilitySpec{Durability::kReplica, 0}.str()), "replica");
}

}  // namespace
}  // namespace dtf::cluster
