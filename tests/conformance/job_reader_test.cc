// Reads a job's parameters while real workers train it on real psd servers.

#include "common/wire/ps/job_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <set>

#include "tests/conformance/rpc_harness.h"

namespace dtf::exchange {
namespace {

using std::chrono::seconds;

constexpr uint32_t kElements = 1600;

// Variable v<i> is on ps/i; "split" has a half on each.
arena::ModelDeclaration modelOf(bool sync, uint64_t steps) {
  std::vector<arena::VariableParts> variables;
  for (uint32_t ps = 0; ps < 2; ++ps)
    variables.push_back({"v" + std::to_string(ps), Shape{kElements}, {{ps, 0, kElements}}});
  variables.push_back({"split", Shape{2, kElements / 2}, {{0, 0, 801}, {1, 801, kElements - 801}}});
  arena::ModelDeclaration model;
  model.layout = arena::makeLayout(variables, 2);
  model.optimizer.kind = cluster::OptimizerSpec::Kind::kGradientDescent;
  model.optimizer.learning_rate = 1;
  if (sync) model.replication = {cluster::ReplicationSpec::Mode::kSync, 2, 2};
  model.steps = steps;
  return model;
}

std::vector<wire::ListeningTask> tasksOf(const RpcHarness& cluster) {
  return {{{JobKind::kPs, 0}, cluster.psAddress(0)}, {{JobKind::kPs, 1}, cluster.psAddress(1)}};
}

wire::JobReader::FindHosts hostsOf(const RpcHarness& cluster) {
  return [&cluster] { return tasksOf(cluster); };
}

// A job whose every update adds 1 to each parameter.
class ReadJob {
 public:
  ReadJob(RpcHarness& cluster, const arena::ModelDeclaration& model) {
    for (uint32_t rank = 0; rank < 2; ++rank)
      workers_.push_back(std::async(std::launch::async, [&cluster, model, rank, this] {
        const auto client = cluster.connectRpc(rank);
        client->declare(model);
        std::vector<std::vector<float>> zeros;
        for (const auto& shard : model.layout.shards) zeros.emplace_back(shard.elements);
        if (rank == 0)
          client->job().initialise(std::vector<std::span<const float>>(zeros.begin(), zeros.end()),
                                   replication::kFirstEpoch);
        client->job().waitInitialised();
        replication::StepState state = client->pull();
        while (!state.done) {
          if (ends_ && rank == 0) client->requestStop([](const Error&) {});
          for (uint32_t ps = 0; ps < 2; ++ps)
            for (const auto& slice : model.layout.shards[ps].slices)
              std::fill_n(client->gradients(ps) + slice.offset, slice.count, -1.0F);
          state = pushPull(*client, state.next_step, state.next_batch, 0);
        }
        client->job().leave();
      }));
  }
  ~ReadJob() { end(); }
  void end() {
    ends_ = true;
    for (auto& worker : workers_)
      if (worker.valid()) worker.get();
  }

 private:
  std::atomic<bool> ends_{false};
  std::vector<std::future<void>> workers_;
};

TEST(JobReader, ReadsAllVariablesOfOneStepOfASyncJobThatTrains) {
  RpcHarness cluster(2, 2);
  const arena::ModelDeclaration model = modelOf(true, 1'000'000'000);
  wire::JobReader reader("conformance", hostsOf(cluster), {});
  ReadJob job(cluster, model);
  std::set<uint64_t> steps;
  std::vector<float> values;
  for (int i = 0; i < 40; ++i) {
    const wire::TakenVersion taken = reader.take(seconds(60));
    EXPECT_TRUE(steps.empty() || taken.step >= *steps.rbegin());
    steps.insert(taken.step);
    for (uint32_t variable = 0; variable < 3; ++variable) {
      reader.read(variable, values);
      EXPECT_EQ(values, std::vector<float>(kElements, static_cast<float>(taken.step)))
          << "of v" << variable << " at " << taken.step;
    }
  }
  EXPECT_EQ(reader.model().layout, model.layout);
  EXPECT_GT(steps.size(), 5u) << "the job hardly trained";
}

TEST(JobReader, ReadsEachShardOfAnAsyncJob) {
  RpcHarness cluster(2, 2);
  wire::JobReader reader("conformance", hostsOf(cluster), {});
  ReadJob job(cluster, modelOf(false, 1'000'000'000));
  std::vector<float> values;
  for (int i = 0; i < 10; ++i) {
    const wire::TakenVersion taken = reader.take(seconds(60));
    for (uint32_t variable = 0; variable < 2; ++variable) {
      reader.read(variable, values);
      EXPECT_EQ(values, std::vector<float>(kElements, values[0])) << "half an update";
      EXPECT_GE(values[0], static_cast<float>(taken.step));
    }
  }
}

TEST(JobReader, AJobThatStandsStillIsReadToo) {
  RpcHarness cluster(2, 2);
  wire::JobReader reader("conformance", hostsOf(cluster), {});
  const arena::ModelDeclaration model = modelOf(true, 1'000'000'000);
  std::vector<std::unique_ptr<wire::RpcExchangeClient>> clients;
  for (uint32_t rank = 0; rank < 2; ++rank) {
    clients.push_back(cluster.connectRpc(rank));
    clients[rank]->declare(model);
  }
  std::vector<std::vector<float>> initial;
  for (const auto& shard : model.layout.shards) initial.emplace_back(shard.elements, 0.5F);
  clients[0]->job().initialise(std::vector<std::span<const float>>(initial.begin(), initial.end()),
                               replication::kFirstEpoch);
  EXPECT_EQ(reader.take(seconds(60)).step, 0u);
  std::vector<float> values;
  reader.read(2, values);
  EXPECT_EQ(values, std::vector<float>(kElements, 0.5F));
  for (auto& client : clients) client->job().leave();
}

TEST(JobReader, TellsWhatIsMissing) {
  RpcHarness cluster(2, 2);
  const auto errorOf = [&](const std::string& job, const wire::JobReader::FindHosts& hosts) {
    wire::JobReader reader(job, hosts, {});
    try {
      reader.take(std::chrono::milliseconds(300));
    } catch (const Error& error) {
      return error.message();
    }
    return std::string("taken");
  };
  using ::testing::HasSubstr;
  EXPECT_THAT(errorOf("conformance", hostsOf(cluster)),
              HasSubstr("no worker has declared the model to ps/0 yet"));
  const std::vector<wire::ListeningTask> nobody = [] {
    const Fd listening = testing::listenOnLoopback();
    const cluster::Address address{"127.0.0.1", testing::portOf(listening)};
    return std::vector<wire::ListeningTask>{{{JobKind::kPs, 0}, address}};
  }();
  // The reason is the first attempt's, also when the last one runs out of time.
  EXPECT_THAT(errorOf("conformance", [&] { return nobody; }), HasSubstr("cannot reach ps/0"));
  EXPECT_THAT(errorOf("other", hostsOf(cluster)),
              HasSubstr("ps/0 belongs to the job 'conformance', not 'other'"));
  ReadJob job(cluster, modelOf(true, 1'000'000'000));
  wire::JobReader("conformance", hostsOf(cluster), {}).take(seconds(60));
  std::vector<wire::ListeningTask> turned = tasksOf(cluster);
  std::swap(turned[0], turned[1]);
  EXPECT_THAT(errorOf("conformance", [&] { return turned; }),
              HasSubstr("holds shard 1 of the job, not 0"));
  turned.erase(turned.begin());
  EXPECT_THAT(errorOf("conformance", [&] { return turned; }),
              HasSubstr("trains a model on 2 hosts, not on the 1"));
}

}  // namespace
}  // namespace dtf::exchange
