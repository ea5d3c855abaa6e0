#pragma once

// A worker's client in this process that takes gradients while they are written, as a client over
// the network does.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "tests/unit/train/wrapped_client.h"

namespace dtf::train {

// Reads each element once, as soon as it is reported as written. Elements that aren't written yet
// are NaN. Ownership is as in WrappedClient.
class StreamingClient final : public WrappedClient {
 public:
  using WrappedClient::WrappedClient;
  void declare(const arena::ModelDeclaration& model,
               std::shared_ptr<optimizer::DeviceArrays> device = nullptr) override {
    WrappedClient::declare(model, std::move(device));
    layout_ = model.layout;
    read_.resize(layout_.shards.size());
    for (const arena::ShardLayout& shard : layout_.shards) elements_.push_back(shard.elements);
    poison();
  }
  exchange::Traits traits() const override {
    exchange::Traits traits = WrappedClient::traits();
    traits.streams = streams;
    return traits;
  }
  void begin(uint64_t step, uint32_t batch, float loss, exchange::Gradient gradient) override {
    ASSERT_FALSE(push_);
    if (gradient == exchange::Gradient::kWhole)
      return WrappedClient::begin(step, batch, loss, gradient);
    push_ = Push{step, batch, loss};
    ++started;
    for (std::vector<float>& read : read_) read.clear();
  }
  void written(std::span<const uint64_t> elements) override {
    ASSERT_TRUE(push_.has_value());
    ASSERT_EQ(elements.size(), read_.size());
    ++times_told;
    for (uint32_t ps = 0; ps < read_.size(); ++ps) {
      ASSERT_GE(elements[ps], read_[ps].size());
      ASSERT_LE(elements[ps], elements_[ps]);
      read_[ps].insert(read_[ps].end(), gradients(ps) + read_[ps].size(),
                       gradients(ps) + elements[ps]);
    }
    is_whole = std::ranges::equal(read_, elements_, {}, &std::vector<float>::size);
  }
  replication::StepState finish(const Error* failure = nullptr) override {
    if (!push_) return WrappedClient::finish(failure);
    const Push push = *std::exchange(push_, std::nullopt);
    if (failure != nullptr) {
      abandoned = failure->message();
      return {};
    }
    EXPECT_TRUE(is_whole);
    for (uint32_t ps = 0; ps < read_.size(); ++ps) std::ranges::copy(read_[ps], gradients(ps));
    WrappedClient::begin(push.step, push.batch, push.loss, exchange::Gradient::kWhole);
    replication::StepState state = WrappedClient::finish();
    poison();
    state.next_batch = next_batch;
    return state;
  }

  bool streams = true;
  uint32_t next_batch = 0;  // the batch that its ps ask for
  int started = 0, times_told = 0;
  bool is_whole = false;                 // state of the last push
  std::optional<std::string> abandoned;  // the reason

 private:
  struct Push {
    uint64_t step = 0;
    uint32_t batch = 0;
    float loss = 0;
  };
  // Overwrites all elements but the padding, which nothing reads.
  void poison() {
    for (uint32_t ps = 0; ps < read_.size(); ++ps)
      for (const arena::Slice& slice : layout_.shards[ps].slices)
        std::fill_n(gradients(ps) + slice.offset, slice.count, std::nanf(""));
  }

  arena::ParameterLayout layout_;
  std::optional<Push> push_;
  std::vector<uint64_t> elements_;        // by ps
  std::vector<std::vector<float>> read_;  // by ps, in the order of the arena
};

}  // namespace dtf::train
