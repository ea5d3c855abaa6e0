#pragma once

// What the steps of a graph's file are fed with: numbers of the file, and batches of its data set.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
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
  // anew in each epoch. Valid until the next call.
  const std::vector<engine::Feed>& of(int64_t step);

 private:
  void openData(const model::GraphSpec& spec, yaml::Report& report);
  void makeValues();

  const std::vector<model::GraphFeed> specs_;
  std::vector<Tensor> values_;
  std::vector<engine::Feed> feeds_;
  std::vector<std::pair<size_t, const data::Part*>> from_data_;  // which of values_, and of what
  std::optional<data::BatchReader> batches_;
};

// The tensors that are fed, as a signature has them.
std::vector<std::string> fedTensors(const model::GraphSpec& spec);

}  // namespace dtf::launcher
