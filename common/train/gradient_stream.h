#pragma once

// Sends a gradient while it is computed. The backward pass computes the gradient of the last layer
// first, which can travel while earlier layers' are computed. "Wait-free backpropagation": H. Zhang
// et al., "Poseidon", USENIX ATC 2017. A push stays one message, which a ps takes whole or not at
// all.

#include <cstdint>
#include <span>
#include <vector>

#include "common/exchange/exchange_client.h"
#include "common/train/model_step.h"
#include "common/train/parameter_binding.h"

namespace dtf::train {

// Bytes of gradient that a step reports at once: half a millisecond at 10 Gbit/s.
inline constexpr size_t kStreamBucketBytes = size_t{512} << 10;

// Begins an exchange during the step, and releases each part of the gradient once it is final.
// Borrows: `client` and `binding`, which must outlive this.
// Threads: the training thread.
// Blocks: never.
// Errors: none of its own. Once an exchange has begun, the owner calls complete() when nothing can
// fail any more, or ExchangeClient::finish() with the failure.
class GradientStream final : public GradientListener {
 public:
  // `layout` has no sparse variables.
  GradientStream(const arena::ParameterLayout& layout, exchange::ExchangeClient& client,
                 ParameterBinding& binding);

  // Announces that the gradient of `due` will be computed with this listener.
  void expect(const replication::StepState& due);
  // Announces that the next gradient will be computed without this listener.
  void expectNothing() { has_begun_ = false; }

  // Begins the exchange, unless the loss is not finite.
  void onLoss(float loss) override;
  void onGradients(std::span<const uint32_t> variables) override;

  // Returns whether the exchange of the gradient announced last has begun.
  bool hasBegun() const { return has_begun_; }
  // Releases the rest of the gradient; without its end a ps uses none of it. Call it when nothing
  // can fail any more.
  void complete();

 private:
  // The progress in one ps's arena.
  struct Shard {
    std::vector<arena::Slice> slices;  // by offset
    uint64_t elements = 0;
    size_t made = 0;  // final slices, from the first on
  };
  void tellClient();
  uint64_t writtenOf(Shard& shard) const;

  exchange::ExchangeClient& client_;
  ParameterBinding& binding_;
  replication::StepState due_;
  bool has_begun_ = false;
  std::vector<Shard> shards_;      // by ps
  std::vector<bool> is_made_;      // by variable
  std::vector<uint64_t> written_;  // final elements, by ps
};

}  // namespace dtf::train
