#pragma once

// What the steps of a graph's file are fed with: numbers of the file, and batches of its data set.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/data/batch_order.h"
#include "common/engine/session.h"
#include "common/model/read_graph.h"
#include "common/yaml/report.h"

namespace dtf::launcher {

// Owns: the data set and the tensors that are fed.
// Threads: thread-compatible.
// Blocks: on the disk.
// Memory: the data set's; that of what is fed only from of() on, when it is known to be a batch of
// the data.
class GraphFeeds {
 public:
  // `report` is that which read the file.
  // Errors: what the file may not say of its data, and what the data's reader says; kBadConfig at
  // the feed for a tensor that isn't a batch of the data.
  GraphFeeds(const model::GraphSpec& spec, yaml::Report& report);
  GraphFeeds(const GraphFeeds&) = delete;
  GraphFeeds& operator=(const GraphFeeds&) = delete;

  // Of step `step`, from 1 on: batch after batch of an order that follows from the file's seed,
  // anew in each epoch; a step has one batch for each tower. Valid until the next call.
  const std::vector<engine::Feed>& of(int64_t step);

 private:
  // The batch of one tower. Value type.
  struct TowerBatch {
    const model::GraphFeed* feed = nullptr;  // the first one that takes it
    int64_t examples = 0;
  };
  // A value that is read from the data: examples [first, first + count) of a step's. Value type.
  struct FromData {
    size_t value = 0;  // of values_
    const data::Part* part = nullptr;
    int64_t tower = 0;
    size_t first = 0, count = 0;
  };

  void openData(const model::GraphSpec& spec, yaml::Report& report);
  int64_t divideStep(const std::map<int64_t, TowerBatch>& towers);
  void makeValues();

  const std::vector<model::GraphFeed> specs_;
  std::vector<Tensor> values_;
  std::vector<engine::Feed> feeds_;
  std::vector<FromData> from_data_;
  std::optional<data::BatchReader> batches_;
};

// The tensors that are fed, as a signature has them.
std::vector<std::string> fedTensors(const model::GraphSpec& spec);

}  // namespace dtf::launcher
