#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <optional>

#include "common/base/error.h"
#include "tests/unit/net/channels/remote_arena.h"

namespace dtf::net {
namespace {

using ::testing::HasSubstr;

TEST(RemoteDomain, AHostWithoutACardIsRefusedUnlessTransportsAreNamed) {
  if (const std::string reason = absence(); !reason.empty()) GTEST_SKIP() << reason;
  if (std::filesystem::exists("/sys/class/infiniband")) GTEST_SKIP() << "this host has a card";
  ::unsetenv("UCX_TLS");
  try {
    RemoteDomain::open();
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadConfig);
    EXPECT_THAT(error.message(), HasSubstr("a network card with RDMA is needed"));
  }
  const UcxTransports none("no_such_transport");
  EXPECT_THROW(RemoteDomain::open(), Error);
}

TEST(RemoteDomain, ItsTextNamesTheVersionAndTheTransports) {
  if (const std::string reason = absence(); !reason.empty()) GTEST_SKIP() << reason;
  const UcxTransports tcp("tcp");
  EXPECT_THAT(RemoteDomain::open()->text(), ::testing::MatchesRegex("UCX .*, UCX_TLS=tcp"));
  EXPECT_THAT(RemoteDomain::open()->text(), HasSubstr(RemoteDomain::open()->version()));
}

TEST(RemoteDomain, AnArenaIsRegisteredOnceAndReleasedWithItsOwner) {
  if (const std::string reason = absence(); !reason.empty()) GTEST_SKIP() << reason;
  const UcxTransports tcp("tcp");
  const auto domain = RemoteDomain::open();
  std::optional<Arena> first(*domain);
  const size_t before = domain->TEST_registrations();
  const auto again = domain->registered({first->buffer->as<std::byte>(), kBytes}, first->buffer,
                                        RemoteAccess::kWrite);
  EXPECT_EQ(again, first->registered);
  EXPECT_EQ(domain->TEST_registrations(), before);
  first.reset();
  const Arena second(*domain);  // `again` still holds the first one
  EXPECT_EQ(domain->TEST_registrations(), before + 1);
}

}  // namespace
}  // namespace dtf::net
