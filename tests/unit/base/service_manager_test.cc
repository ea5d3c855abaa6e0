#include "common/base/service_manager.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "common/base/error.h"
#include "tests/support/notify_socket.h"
#include "tests/support/process.h"

namespace dtf {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(ServiceManager, GetsEachWordInADatagramOfItsOwn) {
  const testing::TemporaryFolder folder;
  testing::NotifySocket socket(folder.path() + "/notify");
  const ServiceManager manager(socket.name(), {});
  EXPECT_TRUE(manager.tell("READY=1", seconds(10)));
  EXPECT_TRUE(manager.tell("WATCHDOG=1\nSTATUS=step 1"));
  EXPECT_EQ(socket.next(seconds(10)), "READY=1");
  EXPECT_EQ(socket.next(seconds(10)), "WATCHDOG=1\nSTATUS=step 1");
}

TEST(ServiceManager, MayListenUnderAnAbstractName) {
  testing::NotifySocket socket("@dtf-service-manager-test-" + std::to_string(::getpid()));
  EXPECT_TRUE(ServiceManager(socket.name(), {}).tell("READY=1"));
  EXPECT_EQ(socket.next(seconds(10)), "READY=1");
}

TEST(ServiceManager, WhatATaskSaidOfItsFailureIsReadBack) {
  const Error own(ErrorCode::kBadConfig, "cannot read mnist.csv: no such file");
  const auto said = readFailedStatus(failedStatus(own));
  ASSERT_TRUE(said.has_value());
  EXPECT_EQ(said->message, own.message());
  EXPECT_FALSE(said->job_ended);
  const auto of_another = readFailedStatus(failedStatus(with(ErrorTrait::kJobEnded, own)));
  ASSERT_TRUE(of_another.has_value());
  EXPECT_EQ(of_another->message, own.message());
  EXPECT_TRUE(of_another->job_ended);
  const auto of_010 = readFailedStatus("failed: the job was ended by worker/1: no such file");
  ASSERT_TRUE(of_010.has_value());
  EXPECT_TRUE(of_010->job_ended) << "a task of 0.1.0 that ended with its job";
  EXPECT_FALSE(readFailedStatus("step 120 of 1000").has_value());
}

TEST(ServiceManager, AResultIsRecognizedAndNoOtherStatusIs) {
  EXPECT_TRUE(isResultStatus(resultStatus(0)));
  EXPECT_TRUE(isResultStatus(resultStatus(1000)));
  EXPECT_FALSE(isResultStatus("step 1000 of 1000, loss 0.1, finishing"));
  EXPECT_FALSE(isResultStatus(""));
}

TEST(ServiceManager, NobodyThereIsNoError) {
  const testing::TemporaryFolder folder;
  EXPECT_FALSE(ServiceManager(folder.path() + "/none", {}).tell("READY=1", seconds(10)));
}

// WATCHDOG=1, which the next one replaces, never waits; READY=1 waits for the given time.
TEST(ServiceManager, OneThatDoesNotReadHoldsNobodyUpForLong) {
  const testing::TemporaryFolder folder;
  const testing::NotifySocket socket(folder.path() + "/notify");
  const ServiceManager manager(socket.name(), {});
  int sent = 0;
  while (sent < 100'000 && manager.tell("WATCHDOG=1")) ++sent;
  ASSERT_LT(sent, 100'000) << "the kernel bounds what waits there";
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(manager.tell("READY=1", milliseconds(50)));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(40));
}

TEST(ServiceManager, ANameThatIsNoUnixSocketIsRefused) {
  for (const std::string& name :
       {std::string("vsock:2:1"), std::string(), std::string("@"), "/" + std::string(200, 'x')})
    EXPECT_THROW(ServiceManager(name, {}), Error) << name;
}

TEST(ServiceManager, TheWatchdogIsOfTheProcessThatIsNamed) {
  EXPECT_EQ(watchdogPeriod(nullptr, nullptr, 7), Duration{0});
  EXPECT_EQ(watchdogPeriod("30000000", nullptr, 7), seconds(30));
  EXPECT_EQ(watchdogPeriod("30000000", "7", 7), seconds(30));
  EXPECT_EQ(watchdogPeriod("30000000", "8", 7), Duration{0});
  for (const char* text : {"", "soon", "-1", "5s"})
    EXPECT_THROW(watchdogPeriod(text, nullptr, 7), Error) << text;
}

TEST(ServiceManager, AStatusIsOneShortLine) {
  EXPECT_EQ(statusWord("step 1\nREADY=1"), "STATUS=step 1 READY=1");
  EXPECT_EQ(statusWord(std::string(5000, 'x')).size(), kServiceStatusBytesMax);
}

}  // namespace dtf
