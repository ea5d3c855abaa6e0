#include "daemons/workerd/worker_client.h"

#include <gtest/gtest.h>

namespace dtf::workerd {
namespace {

// A client that only has the set of ps that received a stop signal.
class ToldClient final : public WorkerClient {
 public:
  explicit ToldClient(std::set<uint32_t> told) : told_(std::move(told)) {}
  std::set<uint32_t> toldToEnd() override { return told_; }

  exchange::ExchangeClient& parameters() override {
    throw Error(ErrorCode::kInternal, "not asked");
  }
  std::unique_ptr<checkpoint::CheckpointClient> checkpoints(double) override { return nullptr; }
  void requestStop(WorkerStatus::Refused) override {}
  void pause() override {}
  void fail(const Error&, wire::FailureOf, Duration) override {}
  void endWith(const Error&) override {}
  void askHeartbeats(std::function<void()>) override {}

 private:
  const std::set<uint32_t> told_;
};

std::string textOf(std::set<uint32_t> told, const ShardHosts& hosts = {}) {
  ToldClient client(std::move(told));
  return whoWasToldToEnd(client, hosts);
}

TEST(WorkerClient, ThePsThatWereToldToEndAreNamed) {
  EXPECT_EQ(textOf({1}), "ps/1 was told to end");
  EXPECT_EQ(textOf({2, 0, 1}), "ps/0, ps/1, ps/2 were told to end");
  EXPECT_EQ(textOf({0, 1}, {1, 2}), "ps/0, worker/0 were told to end");
  EXPECT_EQ(textOf({}), "a ps was told to end") << "which one was not to be found out";
}

}  // namespace
}  // namespace dtf::workerd
