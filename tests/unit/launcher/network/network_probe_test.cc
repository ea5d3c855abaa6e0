#include "launcher/network/network_probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>

#include "common/base/error.h"
#include "launcher/network/interfaces.h"

namespace dtf::launcher {
namespace {

using ::testing::HasSubstr;

Measured ask(NetworkProbe& from, const Measure& order) {
  const auto told = std::make_shared<std::promise<Measured>>();
  from.measure(order, [told](const Measured& measured) { told->set_value(measured); });
  auto answer = told->get_future();
  if (answer.wait_for(std::chrono::seconds(30)) == std::future_status::ready) return answer.get();
  ADD_FAILURE() << "no answer";
  return {};
}

TEST(NetworkProbe, OnLoopbackTakesNothingElsewhere) {
  NetworkProbe one({"127.0.0.1", "one"}), two({"localhost", "two"});
  ASSERT_EQ(two.addresses().size(), 1u);
  EXPECT_EQ(two.addresses()[0].interface, "lo");
  const cluster::Address there{"localhost", two.addresses()[0].port};
  const Measured measured = ask(one, {7, there, "two", ""});
  EXPECT_EQ(measured.problem, "");
  EXPECT_EQ(measured.number, 7u);
  EXPECT_GT(measured.bytes_per_second, 1e6);
  EXPECT_GT(measured.round_trip_us, 0);
  EXPECT_EQ(ask(one, {8, there, "two", ""}).problem, "") << "and again";
}

TEST(NetworkProbe, AnotherMachineWithTheSameAddressIsToldApart) {
  NetworkProbe one({"127.0.0.1", "one"}), two({"127.0.0.1", "two"});
  const Measured measured = ask(one, {1, {"127.0.0.1", two.addresses()[0].port}, "three", ""});
  EXPECT_THAT(measured.problem, HasSubstr("another machine has 127.0.0.1"));
}

// The launcher that ordered the first has given it up.
TEST(NetworkProbe, AnotherMeasurementTakesThePlaceOfOneThatIsUnderWay) {
  NetworkProbe one({"127.0.0.1", "one"}), two({"127.0.0.1", "two"});
  const cluster::Address there{"127.0.0.1", two.addresses()[0].port};
  std::atomic<bool> first_is_told = false;
  one.measure({1, there, "two", ""}, [&](const Measured&) { first_is_told = true; });
  EXPECT_EQ(ask(one, {2, there, "two", ""}).problem, "");
  EXPECT_FALSE(first_is_told);
}

TEST(NetworkProbe, WhoIsNotThereIsAProblem) {
  NetworkProbe one({"127.0.0.1", "one"});
  uint16_t port = 0;
  {
    const NetworkProbe gone({"127.0.0.1", "two"});
    port = gone.addresses()[0].port;
  }
  EXPECT_THAT(ask(one, {1, {"127.0.0.1", port}, "two", ""}).problem,
              HasSubstr("Connection refused"));
}

TEST(NetworkProbe, ListensBeyondLoopbackOnlyWhereTasksMay) {
  const auto others = interfaceAddresses();
  if (others.empty()) GTEST_SKIP() << "this host has no address but loopback";
  try {
    NetworkProbe({others[0].address, "one"});
    ADD_FAILURE() << "it listens";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadConfig);
  }
  const NetworkProbe probe({others[0].address, "one", true});
  EXPECT_LE(probe.addresses().size(), std::min(others.size(), kProbeAddressesMax));
  ASSERT_GE(probe.addresses().size(), 1u);
  EXPECT_EQ(probe.addresses()[0].address, others[0].address);
  EXPECT_EQ(probe.addresses()[0].interface, others[0].interface);
}

}  // namespace
}  // namespace dtf::launcher
