#pragma once

// A worker receives only the parameter rows that it asks for, over any transport: see
// exchange_client_suite.h.

#include <vector>

#include "tests/conformance/sparse_rows_suite.h"

namespace dtf::exchange {

class WantedRowsSuite : public SparseRowsSuite {
 protected:
  // Wants these rows of the table on ps/1.
  static void wantRows(ExchangeClient& client, const std::vector<uint32_t>& ids) {
    client.setRows(RowsOf::kParameters, 0, {});
    client.setRows(RowsOf::kParameters, 1, {{static_cast<uint32_t>(ids.size())}, ids});
  }
  static replication::StepState pushNothing(ExchangeClient& client,
                                            const replication::StepState& due) {
    std::fill_n(client.gradients(0), 16, 0.0F);
    client.setRows(RowsOf::kGradient, 1, {{0}, {}});
    std::fill_n(client.gradients(1), 16, 0.0F);
    return pushPull(client, due.next_step, due.next_batch, 0);
  }
  static std::vector<float> rowOf(const ExchangeClient& client, uint32_t row) {
    const float* const at = client.view(Values::kParameters, 1) + 16 + 2 * row;
    return {at, at + 2};
  }
  static std::vector<float> wholeTableOf(const ExchangeClient& client) {
    return {client.view(Values::kWhole, 1) + 16, client.view(Values::kWhole, 1) + 24};
  }
};

TEST_P(WantedRowsSuite, TheRowsThatAreWantedAreTheNewestAndDenseVariablesToo) {
  arena::ModelDeclaration model = tableModel();
  model.steps = 100;
  Clients clients = start(2, 2, model, zeros(model));
  ExchangeClient& reads = *clients[0];
  ExchangeClient& writes = *clients[1];
  ASSERT_TRUE(reads.traits().brings_rows);
  replication::StepState reading = reads.pull(), writing = writes.pull();
  for (int round = 0; round < 8; ++round) {
    const auto row = static_cast<uint32_t>(round % 4);
    pushRow(writes, row, {-1.0F - static_cast<float>(row), -2});
    std::fill_n(writes.gradients(0), 16, -1.0F);
    std::fill_n(writes.gradients(1), 16, -1.0F);
    writing = pushPull(writes, writing.next_step, writing.next_batch, 0);
    wantRows(reads, {row});
    reading = round % 2 == 0 ? pushNothing(reads, reading) : reads.pull();
    const float times = static_cast<float>(1 + round / 4);
    EXPECT_EQ(rowOf(reads, row),
              (std::vector<float>{times * (1.0F + static_cast<float>(row)), times * 2}));
    if (!reads.traits().has_whole && round > 0)
      EXPECT_EQ(rowOf(reads, (row + 3) % 4)[1], (1.0F + (round - 1) / 4) * 2) << "as it came";
    EXPECT_EQ(std::count(reads.view(Values::kParameters, 0),
                         reads.view(Values::kParameters, 0) + 16, 1.0F + round),
              16);
    EXPECT_EQ(std::count(reads.view(Values::kParameters, 1),
                         reads.view(Values::kParameters, 1) + 16, 1.0F + round),
              16);
  }
  wantRows(reads, {});
  reading = pushNothing(reads, reading);
  EXPECT_EQ(reads.view(Values::kParameters, 1)[0], 8);
  // All rows come with pull(Values::kWhole), and with an exchange that names none.
  pushRow(writes, 3, {-100, 0});
  writing = pushPull(writes, writing.next_step, writing.next_batch, 0);
  const std::vector<float> table = {2, 4, 4, 4, 6, 4, 108, 4};
  wantRows(reads, {1});
  reading = pushNothing(reads, reading);
  if (reads.traits().has_whole) {
    EXPECT_EQ(tableOf(reads), table);
  } else {
    EXPECT_EQ(rowOf(reads, 3)[0], 8) << "it was not asked for";
  }
  reads.pull(Values::kWhole);
  EXPECT_EQ(wholeTableOf(reads), table);
  EXPECT_EQ(rowOf(reads, 1), (std::vector<float>{4, 4}));
  pushNothing(reads, reading);
  EXPECT_EQ(tableOf(reads), table);
}

// The two workers of a sync step name different rows.
TEST_P(WantedRowsSuite, EachWorkerOfAStepIsBroughtItsOwn) {
  arena::ModelDeclaration model = tableModel();
  model.replication = {cluster::ReplicationSpec::Mode::kSync, 2, 2};
  model.steps = 40;
  Clients clients = start(2, 2, model, zeros(model));
  inThreads(clients, [](ExchangeClient& client, uint32_t rank) {
    replication::StepState state = client.pull();
    for (uint32_t step = 0; !state.done; ++step) {
      // A row's mean is over the workers that name it: each worker names its own row.
      pushRow(client, 2 * rank + step % 2, {-1, -1});
      wantRows(client, {2 * rank + step % 2});
      state = pushPull(client, state.next_step, state.next_batch, 0);
      const auto times = static_cast<float>(1 + step / 2);
      EXPECT_EQ(rowOf(client, 2 * rank + step % 2), (std::vector<float>{times, times}));
    }
  });
}

}  // namespace dtf::exchange
