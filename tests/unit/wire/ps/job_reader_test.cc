// A reader without a job. tests/conformance/job_reader_test.cc reads jobs that train.

#include "common/wire/ps/job_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/loopback.h"

namespace dtf::wire {
namespace {

using ::testing::HasSubstr;

Error errorOf(const JobReader::FindHosts& find_hosts) {
  JobReader reader("job", find_hosts, {});
  try {
    reader.take(std::chrono::milliseconds(250));
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error";
  return Error(ErrorCode::kInternal, "");
}

TEST(JobReaderTest, AHostThatIsNotThereIsNamed) {
  const Fd listening = testing::listenOnLoopback();
  const cluster::Address address{"127.0.0.1", testing::portOf(listening)};
  const Error error = errorOf([&] {
    return std::vector<ListeningTask>{{{JobKind::kWorker, 0}, address}};
  });
  EXPECT_THAT(error.message(), HasSubstr("worker/0"));
}

TEST(JobReaderTest, LooksForTheHostsUntilTheyAreKnown) {
  int looks = 0;
  const Error error = errorOf([&]() -> std::vector<ListeningTask> {
    ++looks;
    throw Error(ErrorCode::kUnavailable, "no start is recorded");
  });
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_EQ(error.message(), "no start is recorded");
  EXPECT_GT(looks, 1);
}

TEST(JobReaderTest, AMistakeIsNoReasonToTryAgain) {
  int looks = 0;
  const Error error = errorOf([&]() -> std::vector<ListeningTask> {
    ++looks;
    throw Error(ErrorCode::kBadConfig, "wrong");
  });
  EXPECT_EQ(error.message(), "wrong");
  EXPECT_EQ(looks, 1);
}

}  // namespace
}  // namespace dtf::wire
