#pragma once

// Gradients of single rows, over any transport: see exchange_client_suite.h.

#include <vector>

#include "tests/conformance/exchange_client_suite.h"

namespace dtf::exchange {

class SparseRowsSuite : public ExchangeClientSuite {
 protected:
  // Two parts of 16 elements: "v" on ps/0, a table of 4 x 2 on ps/1.
  static arena::ModelDeclaration tableModel() {
    arena::ModelDeclaration model;
    model.layout = arena::makeLayout({{"v", Shape{16}, {{0, 0, 16}}},
                                      {"u", Shape{16}, {{1, 0, 16}}},
                                      {"table", Shape{4, 2}, {{1, 0, 8}}, std::nullopt, true}},
                                     2);
    model.optimizer.learning_rate = 1;
    model.steps = 10;
    return model;
  }
  static std::vector<float> tableOf(const ExchangeClient& client) {
    return {client.view(Values::kParameters, 1) + 16, client.view(Values::kParameters, 1) + 24};
  }
};

TEST_P(SparseRowsSuite, ARowTakesTheMeanOfTheWorkersThatNameIt) {
  arena::ModelDeclaration model = tableModel();
  model.replication = {cluster::ReplicationSpec::Mode::kSync, 3, 3};
  Clients clients = start(2, 3, model, zeros(model));
  inThreads(clients, [](ExchangeClient& client, uint32_t rank) {
    const replication::StepState state = client.pull();
    client.gradients(1)[0] = 3;
    const float k = static_cast<float>(rank);
    pushRow(client, rank == 2 ? 0 : 2, {-1 - k, -10 - k});
    pushPull(client, state.next_step, state.next_batch, 0);
    EXPECT_EQ(client.view(Values::kParameters, 1)[0], -3);
    EXPECT_EQ(tableOf(client), (std::vector<float>{3, 12, 0, 0, 1.5f, 10.5f, 0, 0}));
  });
}

// Three examples in batches of two: worker/0 has two of them, worker/1 one.
TEST_P(SparseRowsSuite, AShortStepWeighsItsExamples) {
  arena::ModelDeclaration model = tableModel();
  model.replication = {cluster::ReplicationSpec::Mode::kSync, 2, 2};
  model.epochs = {.examples = 3, .batch_size = 2};
  Clients clients = start(2, 2, model, zeros(model));
  inThreads(clients, [](ExchangeClient& client, uint32_t rank) {
    const replication::StepState state = client.pull();
    client.gradients(1)[0] = rank == 0 ? 3 : 6;
    pushRow(client, 0, {rank == 0 ? -1.0f : -2.0f, 0});
    pushPull(client, state.next_step, state.next_batch, 0);
    EXPECT_NEAR(client.view(Values::kParameters, 1)[0], -4, 1e-5);
    EXPECT_EQ(tableOf(client)[0], 1.5f) << "the workers have weighed their rows";
  });
}

TEST_P(SparseRowsSuite, AsyncRowsAreAppliedAsTheyCome) {
  const arena::ModelDeclaration model = tableModel();
  Clients clients = start(2, 2, model, zeros(model));
  std::vector<replication::StepState> states;
  for (const auto& client : clients) states.push_back(client->pull());
  for (uint32_t rank = 0; rank < 2; ++rank) {
    pushRow(*clients[rank], 1 + rank, {-1, -2});
    states[rank] = pushPull(*clients[rank], states[rank].next_step, 0, 0);
  }
  EXPECT_EQ(tableOf(*clients[1]), (std::vector<float>{0, 0, 1, 2, 1, 2, 0, 0}));
  clients[0]->setRows(RowsOf::kGradient, 1, {{0}, {}});
  clients[0]->gradients(1)[5] = -4;
  pushPull(*clients[0], states[0].next_step, 0, 0);
  EXPECT_EQ(clients[0]->view(Values::kParameters, 1)[5], 4) << "a batch may name no row of this ps";
  EXPECT_EQ(tableOf(*clients[0]), tableOf(*clients[1]));
}

TEST_P(SparseRowsSuite, ARowThatIsNoneIsRefused) {
  const arena::ModelDeclaration model = tableModel();
  Clients clients = start(2, 1, model, zeros(model));
  const replication::StepState state = clients[0]->pull();
  pushRow(*clients[0], 4, {1, 1});
  const std::string message =
      errorOf([&] { pushPull(*clients[0], state.next_step, 0, 0); }, ErrorCode::kBadData);
  EXPECT_NE(message.find("worker/0 pushed to ps/1 row 4 of a sparse variable, but the shard "
                         "has 4 of it"),
            std::string::npos)
      << message;
}

}  // namespace dtf::exchange
