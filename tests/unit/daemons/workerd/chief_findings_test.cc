#include "daemons/workerd/chief_findings.h"

#include <gtest/gtest.h>

namespace dtf::workerd {
namespace {

TEST(ChiefFindings, APsThatHoldsNothingIsNamed) {
  cluster::ClusterSpec cluster;
  cluster.ps.resize(3);
  const Error lost = lostForGood(cluster, 1);
  EXPECT_EQ(lost.code(), ErrorCode::kBadData) << lost.message();
  EXPECT_NE(lost.message().find("ps/1"), std::string::npos) << lost.message();
  EXPECT_EQ(lost.message().find("ps/2"), std::string::npos) << lost.message();
}

}  // namespace
}  // namespace dtf::workerd
