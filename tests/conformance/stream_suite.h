#pragma once

// Pushes that begin before their gradient is written, whatever carries its bytes: see
// parameter_client_suite.h.

#include <algorithm>
#include <numeric>
#include <thread>
#include <vector>

#include "tests/conformance/parameter_client_suite.h"

namespace dtf::ps {

class StreamSuite : public ParameterClientSuite {
 protected:
  static constexpr uint32_t kPs = 2;
  static constexpr size_t kElements = 1 << 18;

  static ModelDeclaration streamedModel(uint64_t steps,
                                        const cluster::ReplicationSpec& replication = {}) {
    ModelDeclaration model = vectorModel(kPs, kElements, 1.0);
    model.replication = replication;
    model.steps = steps;
    return model;
  }

  // Of all ps the elements from `begin` to below `end`.
  static void write(ParameterClient& client, float value, size_t begin, size_t end) {
    for (uint32_t ps = 0; ps < kPs; ++ps)
      std::fill(client.gradients(ps) + begin, client.gradients(ps) + end, value);
    client.gradientsWritten(std::vector<uint64_t>(kPs, end));
  }
  // In pieces of odd sizes.
  static void writeAll(ParameterClient& client, float value) {
    for (size_t begin = 0, end; begin < kElements; begin = end) {
      end = std::min(kElements, begin + 9'001);
      write(client, value, begin, end);
    }
  }
  static void poison(ParameterClient& client) {
    for (uint32_t ps = 0; ps < kPs; ++ps)
      std::fill_n(client.gradients(ps), kElements, std::nanf(""));
  }
  static void expectAll(const ParameterClient& client, float value) {
    for (uint32_t ps = 0; ps < kPs; ++ps)
      EXPECT_EQ(std::count(client.parameters(ps), client.parameters(ps) + kElements, value),
                ssize_t{kElements})
          << "ps/" << ps << " has " << client.parameters(ps)[0];
  }
  static StepState pushStreamed(ParameterClient& client, const StepState& due, float value) {
    client.startPush(due.next_step, due.next_batch, value);
    writeAll(client, value);
    return client.finishPush();
  }
};

// What is sent is what was written last, and what a gradient is computed from stays until it is
// asked for its answer.
TEST_P(StreamSuite, TheParametersStayUntilThePushIsFinished) {
  const ModelDeclaration model = streamedModel(1000);
  Clients clients = start(kPs, 2, model, zeros(model));
  ParameterClient& client = *clients[0];
  StepState state = client.pull();
  float applied = 0;
  for (float value = 1; value <= 20; ++value) {
    const float* before[] = {client.parameters(0), client.parameters(1)};
    poison(client);
    client.startPush(state.next_step, state.next_batch, value);
    writeAll(client, -value);
    // Once another sees the update, the answer is on its way.
    while (clients[1]->pull().global_step < static_cast<uint64_t>(value)) std::this_thread::yield();
    for (int look = 0; look < 3; ++look)
      for (const float* const parameters : before)
        ASSERT_EQ(std::count(parameters, parameters + kElements, applied), ssize_t{kElements});
    state = client.finishPush();
    applied += value;
    EXPECT_EQ(state.loss, value);
    EXPECT_EQ(state.staleness, 0u);
    expectAll(client, applied);
  }
  EXPECT_EQ(state.global_step, 20u);
  client.pull();
  expectAll(client, applied);
}

// To one ps it leaves as it is written, to the other, in one small message, when it is whole.
TEST_P(StreamSuite, ASmallGradientFollowsALargeOneOnceItIsWritten) {
  ModelDeclaration model;
  model.layout = makeLayout(
      {{"large", Shape{kElements}, {{0, 0, kElements}}}, {"small", Shape{32}, {{1, 0, 32}}}}, kPs);
  model.optimizer.learning_rate = 1;
  model.steps = 20;
  Clients clients = start(kPs, 1, model, zeros(model));
  StepState state = clients[0]->pull();
  for (float value = 1; !state.done; ++value) {
    clients[0]->startPush(state.next_step, state.next_batch, 0);
    std::fill_n(clients[0]->gradients(0), kElements / 2, -1.0F);
    clients[0]->gradientsWritten(std::vector<uint64_t>{kElements / 2, 0});
    std::fill_n(clients[0]->gradients(0) + kElements / 2, kElements / 2, -1.0F);
    std::fill_n(clients[0]->gradients(1), 16, -2.0F);
    clients[0]->gradientsWritten(std::vector<uint64_t>{kElements, 16});
    std::fill_n(clients[0]->gradients(1) + 16, 16, -2.0F);
    clients[0]->gradientsWritten(std::vector<uint64_t>{kElements, 32});
    state = clients[0]->finishPush();
    EXPECT_EQ(std::count(clients[0]->parameters(0), clients[0]->parameters(0) + kElements, value),
              ssize_t{kElements});
    EXPECT_EQ(std::count(clients[0]->parameters(1), clients[0]->parameters(1) + 32, 2 * value), 32);
  }
}

// One that writes as it goes, and one whose gradient is whole: the ps doesn't know which is which.
TEST_P(StreamSuite, SyncWorkersThatStreamAndOthersMakeTheSameSteps) {
  const ModelDeclaration model = streamedModel(12, {cluster::ReplicationSpec::Mode::kSync, 2, 2});
  Clients clients = start(kPs, 2, model, zeros(model));
  inThreads(clients, [](ParameterClient& client, uint32_t rank) {
    StepState state = client.pull();
    for (int batch = 0; !state.done; ++batch) {
      poison(client);
      if ((batch / 2 + static_cast<int>(rank)) % 2 == 0) {
        state = pushStreamed(client, state, -2);
      } else {
        for (uint32_t ps = 0; ps < kPs; ++ps) std::fill_n(client.gradients(ps), kElements, -4.0F);
        state = client.exchange(state.next_step, state.next_batch, 0);
      }
      expectAll(client, static_cast<float>(3 * (batch + 1)));
    }
    client.finish();
  });
}

// As a worker whose computation fails: nothing of it counts, and others go on.
TEST_P(StreamSuite, APushThatIsAbandonedHasNoEffect) {
  const ModelDeclaration model = streamedModel(3);
  Clients clients = start(kPs, 2, model, zeros(model));
  const StepState state = clients[0]->pull();
  clients[0]->startPush(state.next_step, state.next_batch, 1);
  write(*clients[0], std::nanf(""), 0, kElements - 16);
  clients[0]->abandonPush(Error(ErrorCode::kTrainingFailed, "the norm is nan"));
  clients[0] = nullptr;
  StepState other = clients[1]->pull();
  while (!other.done) other = pushStreamed(*clients[1], other, -1);
  EXPECT_EQ(other.global_step, 3u);
  expectAll(*clients[1], 3);
}

TEST_P(StreamSuite, WhyAPushFailedIsSaidWhenItIsFinished) {
  const ModelDeclaration model = streamedModel(10);
  Clients clients = start(kPs, 1, model, zeros(model));
  const StepState state = clients[0]->pull();
  clients[0]->startPush(state.next_step, state.next_batch, 0);
  write(*clients[0], 1, 0, kElements / 2);
  const std::unique_ptr<ParameterClient> newer = connect(0);
  write(*clients[0], 1, kElements / 2, kElements);
  const std::string message = errorOf([&] { clients[0]->finishPush(); }, ErrorCode::kUnavailable);
  EXPECT_NE(message.find("fenced: worker/0 was replaced"), std::string::npos) << message;
}

}  // namespace dtf::ps
