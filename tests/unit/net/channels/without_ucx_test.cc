// Builds without the headers of UCX: common/net/channels/remote_memory.cc alone, without
// DTF_HAS_UCX.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/error.h"
#include "common/net/channels/remote_memory.h"

namespace dtf::net {
namespace {

using ::testing::HasSubstr;

TEST(WithoutUcx, RdmaIsRefusedWithTheRemedies) {
  try {
    RemoteDomain::open();
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadConfig);
    EXPECT_THAT(error.message(), HasSubstr("this program was built without it"));
    EXPECT_THAT(error.message(), HasSubstr("libucx-dev is installed (-Ducx=enabled)"));
    EXPECT_THAT(error.message(), HasSubstr("or remove 'transport' from the cluster file"));
  }
}

}  // namespace
}  // namespace dtf::net
