#pragma once

// The parameters of a shard as changes of earlier ones, which the worker has: its base.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "common/arena/codec.h"
#include "common/arena/parameter_version.h"
#include "common/host/reused_buffers.h"
#include "common/wire/arena_codec.h"

namespace dtf::host {

// Encodes changes with a lossy codec, and remembers the base of each worker. A worker's base is
// exactly the parameters that it computes with, so an error in one change is part of the next one.
// Workers with the same base get the same bytes, encoded once; in sync training these are all
// workers that had an answer in each step since they began. A worker without a known base gets all
// parameters, and these are its next base: a new process, or one that a new process of the ps, or a
// ps that went back to an earlier cut, answers.
// Owns: the bases: at most two for each worker, two in all where all workers have the same; the
// changes to one version of the parameters, and buffers that are reused.
// Threads: the data loop only.
class ChangedParameters {
 public:
  ChangedParameters();

  // Values, and the number of the base that they make.
  struct Sent {
    wire::ArenaPart part;
    uint64_t base = 0;
  };
  // Parameters, and the epoch that they belong to.
  struct Version {
    std::shared_ptr<const arena::ParameterVersion> parameters;
    uint64_t epoch = 0;
  };
  // Returns the change from the worker's base to `version`, of the first codec.elements(); nullopt:
  // `base`, the number in its call, is none of its bases of that epoch.
  std::optional<Sent> changeFor(uint32_t rank, uint64_t base, const Version& version,
                                const arena::ChangeCodec& codec);
  // Notes that the worker is sent these parameters as they are. Returns the number of their base.
  uint64_t sentWhole(uint32_t rank, const Version& version);

 private:
  struct Base {
    uint64_t number = 0;
    uint64_t epoch = 0;
    uint64_t elements = 0;
    const float* values = nullptr;
    std::shared_ptr<const void> owner;
  };
  using BaseRef = std::shared_ptr<const Base>;
  struct Worker {
    BaseRef held;  // named in its last call; null: none
    BaseRef sent;  // in the last answer
  };
  struct Change {
    BaseRef from, to;
    uint64_t bytes = 0;
    std::shared_ptr<Buffer> encoded;
  };

  BaseRef makeBase(Base base);
  // Returns the change, which it encodes unless it has.
  const Change& changeOf(const BaseRef& from, const Version& version,
                         const arena::ChangeCodec& codec);

  uint64_t next_number_;
  std::map<uint32_t, Worker> workers_;  // by rank
  std::weak_ptr<const arena::ParameterVersion> whole_version_;
  std::weak_ptr<const Base> whole_;  // of that version
  std::weak_ptr<const arena::ParameterVersion> changed_version_;
  std::vector<Change> changes_;  // to that version; one for each base of a worker
  ReusedBuffers encoded_{16}, values_{32};
};

}  // namespace dtf::host
