#pragma once

// Parameters of which only the rows come that a worker asks for, whatever carries their bytes: see
// parameter_client_suite.h.

#include <vector>

#include "tests/conformance/sparse_rows_suite.h"

namespace dtf::ps {

class WantedRowsSuite : public SparseRowsSuite {
 protected:
  // Of the table on ps/1.
  static void wantRows(ParameterClient& client, const std::vector<uint32_t>& ids) {
    client.wantRows(0, {});
    client.wantRows(1, {{static_cast<uint32_t>(ids.size())}, ids});
  }
  static StepState pushNothing(ParameterClient& client, const StepState& due) {
    std::fill_n(client.gradients(0), 16, 0.0F);
    client.setRows(1, std::vector<uint32_t>{0});
    std::fill_n(client.gradients(1), 16, 0.0F);
    return client.exchange(due.next_step, due.next_batch, 0);
  }
  static std::vector<float> rowOf(const ParameterClient& client, uint32_t row) {
    const float* const at = client.parameters(1) + 16 + 2 * row;
    return {at, at + 2};
  }
  static std::vector<float> wholeTableOf(const ParameterClient& client) {
    return {client.whole(1) + 16, client.whole(1) + 24};
  }
};

TEST_P(WantedRowsSuite, TheRowsThatAreWantedAreTheNewestAndDenseVariablesToo) {
  ModelDeclaration model = tableModel();
  model.steps = 100;
  Clients clients = start(2, 2, model, zeros(model));
  ParameterClient& reads = *clients[0];
  ParameterClient& writes = *clients[1];
  ASSERT_TRUE(reads.bringsRows());
  StepState reading = reads.pull(), writing = writes.pull();
  for (int round = 0; round < 8; ++round) {
    const auto row = static_cast<uint32_t>(round % 4);
    pushRow(writes, row, {-1.0F - static_cast<float>(row), -2});
    std::fill_n(writes.gradients(0), 16, -1.0F);
    std::fill_n(writes.gradients(1), 16, -1.0F);
    writing = writes.exchange(writing.next_step, writing.next_batch, 0);
    wantRows(reads, {row});
    reading = round % 2 == 0 ? pushNothing(reads, reading) : reads.pull();
    const float times = static_cast<float>(1 + round / 4);
    EXPECT_EQ(rowOf(reads, row),
              (std::vector<float>{times * (1.0F + static_cast<float>(row)), times * 2}));
    if (!reads.bringsWhole() && round > 0)
      EXPECT_EQ(rowOf(reads, (row + 3) % 4)[1], (1.0F + (round - 1) / 4) * 2) << "as it came";
    EXPECT_EQ(std::count(reads.parameters(0), reads.parameters(0) + 16, 1.0F + round), 16);
    EXPECT_EQ(std::count(reads.parameters(1), reads.parameters(1) + 16, 1.0F + round), 16);
  }
  wantRows(reads, {});
  reading = pushNothing(reads, reading);
  EXPECT_EQ(reads.parameters(1)[0], 8);
  // Without a wish all come; and beside what a batch has.
  pushRow(writes, 3, {-100, 0});
  writing = writes.exchange(writing.next_step, writing.next_batch, 0);
  const std::vector<float> table = {2, 4, 4, 4, 6, 4, 108, 4};
  wantRows(reads, {1});
  reading = pushNothing(reads, reading);
  if (reads.bringsWhole()) {
    EXPECT_EQ(tableOf(reads), table);
  } else {
    EXPECT_EQ(rowOf(reads, 3)[0], 8) << "it was not asked for";
  }
  reads.pullWhole();
  EXPECT_EQ(wholeTableOf(reads), table);
  EXPECT_EQ(rowOf(reads, 1), (std::vector<float>{4, 4}));
  pushNothing(reads, reading);
  EXPECT_EQ(tableOf(reads), table);
}

// The two workers of a sync step, whose batches name different rows.
TEST_P(WantedRowsSuite, EachWorkerOfAStepIsBroughtItsOwn) {
  ModelDeclaration model = tableModel();
  model.replication = {cluster::ReplicationSpec::Mode::kSync, 2, 2};
  model.steps = 40;
  Clients clients = start(2, 2, model, zeros(model));
  inThreads(clients, [](ParameterClient& client, uint32_t rank) {
    StepState state = client.pull();
    for (uint32_t step = 0; !state.done; ++step) {
      // The mean over those that name a row: each names its own.
      pushRow(client, 2 * rank + step % 2, {-1, -1});
      wantRows(client, {2 * rank + step % 2});
      state = client.exchange(state.next_step, state.next_batch, 0);
      const auto times = static_cast<float>(1 + step / 2);
      EXPECT_EQ(rowOf(client, 2 * rank + step % 2), (std::vector<float>{times, times}));
    }
  });
}

}  // namespace dtf::ps
