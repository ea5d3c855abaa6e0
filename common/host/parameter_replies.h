#pragma once

// Encodes parameters for the replies to one worker.

#include <cstdint>
#include <memory>
#include <vector>

#include "common/arena/parameter_version.h"
#include "common/arena/row_set.h"
#include "common/arena/shard_codecs.h"
#include "common/host/sent_rows.h"
#include "common/host/shard_host.h"
#include "common/wire/arena_codec.h"

namespace dtf::host {

// The form in which a call asks for parameters.
struct ReplyForm {
  arena::RowSet rows{};   // of sparse variables
  uint64_t base = 0;      // see PsData.exchange in ps.capnp
  bool is_exact = false;  // as float32, and no base of later changes
  uint64_t epoch = 0;     // of the reply
};

// The parameters of a reply, in the order in which they are sent.
struct ReplyParts {
  std::vector<wire::ArenaPart> parts;
  uint64_t base = 0;
  bool is_changed = false;
};

// Writes parameters in the form of the job's codec, for the replies to one worker.
// Owns: the codecs of the shard, and memory for rows.
// Borrows: `host` (must outlive this), with what all workers' replies share.
// Threads: the data loop only.
class ParameterReplies {
 public:
  // For worker `rank` and the shard `ps_task`, whose model is declared.
  ParameterReplies(ShardHost& host, uint32_t ps_task, uint32_t rank);

  // Returns the codec of the worker's gradients.
  const arena::Codec& gradient() const { return codecs_.gradient(); }
  // Errors: kUnavailable if the parameters are of another model.
  ReplyParts of(const std::shared_ptr<const arena::ParameterVersion>& parameters,
                const ReplyForm& form);

 private:
  // Returns the parameters before the sparse variables, or all.
  wire::ArenaPart leadingPart(const std::shared_ptr<const arena::ParameterVersion>& parameters,
                              const ReplyForm& form, ReplyParts& reply);

  ShardHost& host_;
  const arena::ShardCodecs codecs_;
  const std::unique_ptr<const arena::ElementCodec> exact_;  // of all parameters
  SentRows sent_rows_;
  const uint32_t rank_;
};

}  // namespace dtf::host
