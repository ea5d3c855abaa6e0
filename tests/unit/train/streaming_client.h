#pragma once

// A worker's client in this process that takes gradients while they are written, as one over the
// network does.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "tests/unit/train/wrapped_client.h"

namespace dtf::train {

// Reads each element once, as soon as it is said to be written. What of a gradient isn't written is
// NaN. Owns, borrows: as WrappedClient.
class StreamingClient final : public WrappedClient {
 public:
  using WrappedClient::WrappedClient;
  void declare(const ps::ModelDeclaration& model) override {
    WrappedClient::declare(model);
    layout_ = model.layout;
    read_.resize(layout_.shards.size());
    for (const ps::ShardLayout& shard : layout_.shards) elements_.push_back(shard.elements);
    poison();
  }
  bool streamsGradients() const override { return streams; }
  void startPush(uint64_t step, uint32_t batch, float loss) override {
    ASSERT_FALSE(push_);
    push_ = Push{step, batch, loss};
    ++started;
    for (std::vector<float>& read : read_) read.clear();
  }
  void gradientsWritten(std::span<const uint64_t> elements) override {
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
  ps::StepState finishPush() override {
    EXPECT_TRUE(is_whole);
    for (uint32_t ps = 0; ps < read_.size(); ++ps) std::ranges::copy(read_[ps], gradients(ps));
    const Push push = *std::exchange(push_, std::nullopt);
    ps::StepState state = exchange(push.step, push.batch, push.loss);
    poison();
    state.next_batch = next_batch;
    return state;
  }
  void abandonPush(const Error& why) override {
    EXPECT_TRUE(push_.has_value());
    push_ = std::nullopt;
    abandoned = why.message();
  }

  bool streams = true;
  uint32_t next_batch = 0;  // that its ps ask for
  int started = 0, times_told = 0;
  bool is_whole = false;                 // the last push, so far
  std::optional<std::string> abandoned;  // why

 private:
  struct Push {
    uint64_t step = 0;
    uint32_t batch = 0;
    float loss = 0;
  };
  // All but the padding, which is nobody's.
  void poison() {
    for (uint32_t ps = 0; ps < read_.size(); ++ps)
      for (const ps::Slice& slice : layout_.shards[ps].slices)
        std::fill_n(gradients(ps) + slice.offset, slice.count, std::nanf(""));
  }

  ps::ParameterLayout layout_;
  std::optional<Push> push_;
  std::vector<uint64_t> elements_;        // by ps
  std::vector<std::vector<float>> read_;  // likewise: in the order of the arena
};

}  // namespace dtf::train
