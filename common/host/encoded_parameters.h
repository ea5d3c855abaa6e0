#pragma once

// The parameters of a shard as their codec sends them.

#include <memory>
#include <string_view>

#include "common/arena/codec.h"
#include "common/arena/parameter_version.h"
#include "common/host/reused_buffers.h"
#include "common/tensor/buffer.h"
#include "common/wire/arena_codec.h"

namespace dtf::host {

// Encodes each version of the parameters once for all replies that contain it; in sync training
// these are the replies to all workers of a step.
// Owns: the encoded version, and buffers that are reused when no message refers to them. Messages
// share both.
// Threads: the data loop only.
class EncodedParameters {
 public:
  // Returns the first codec.elements() of the parameters; where the codec is the identity, in the
  // memory of the parameters. `codec` has no state.
  wire::ArenaPart of(const std::shared_ptr<const arena::ParameterVersion>& parameters,
                     const arena::ElementCodec& codec);

 private:
  std::weak_ptr<const arena::ParameterVersion> newest_;  // the version in `current_`
  std::shared_ptr<Buffer> current_;
  std::string_view current_codec_;  // its name
  uint64_t current_bytes_ = 0;
  ReusedBuffers buffers_{4};
};

}  // namespace dtf::host
