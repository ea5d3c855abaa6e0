#pragma once

// A gradient leaves while it is computed: backwards makes that of the last layer first, and it has
// a way to go while those before it are made. "Wait-free backpropagation": H. Zhang et al.,
// "Poseidon", USENIX ATC 2017. A push stays one message, which a ps takes whole or not at all.

#include <cstdint>
#include <span>
#include <vector>

#include "common/ps/parameter_client.h"
#include "common/train/model_step.h"
#include "common/train/parameter_binding.h"

namespace dtf::train {

// What a step tells of in one piece: half a millisecond of 10 Gbit/s.
inline constexpr size_t kStreamBucketBytes = size_t{512} << 10;

// Borrows: `layout`, `client`, `binding`, which must outlive it.
// Threads: the training thread.
// Blocks: never.
// Errors: none of its own. Once it has started, its owner calls complete() when nothing can fail
// any more, or abandons the push of the client.
class GradientStream final : public GradientListener {
 public:
  // `layout`: without sparse variables.
  GradientStream(const ps::ParameterLayout& layout, ps::ParameterClient& client,
                 ParameterBinding& binding);

  // The gradient of `due` is about to be computed, by one that tells this listener.
  void expect(const ps::StepState& due);
  // It is about to be computed, and nobody will tell.
  void expectNothing() { has_started_ = false; }

  // Starts the push. A loss that is no number has no gradient to be pushed.
  void onLoss(float loss) override;
  void onGradients(std::span<const uint32_t> variables) override;

  // Whether the gradient that was expected last is being pushed.
  bool hasStarted() const { return has_started_; }
  // Nothing has gone wrong: also the end may leave, which a ps needs to take anything.
  void complete();

 private:
  // What is known of one ps's arena.
  struct Shard {
    std::vector<ps::Slice> slices;  // by offset
    uint64_t elements = 0;
    size_t made = 0;  // slices, from the first on, that are final
  };
  void tellClient();
  uint64_t writtenOf(Shard& shard) const;

  ps::ParameterClient& client_;
  ParameterBinding& binding_;
  ps::StepState due_;
  bool has_started_ = false;
  std::vector<Shard> shards_;      // by ps
  std::vector<bool> is_made_;      // by variable
  std::vector<uint64_t> written_;  // elements, by ps
};

}  // namespace dtf::train
