#pragma once

// manifest.json: what a checkpoint holds, where, and with which checksums. It is written last, so a
// checkpoint without a manifest that verifies doesn't exist. CHECKPOINT.md gives the bytes.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/checkpoint/shard_file.h"
#include "common/tensor/shape.h"

namespace dtf::checkpoint {

inline constexpr char kManifestFile[] = "manifest.json";
inline constexpr uint32_t kManifestSchema = 1;
inline constexpr uint64_t kManifestBytesMax = uint64_t{64} << 20;

struct VariableInfo {
  std::string name;
  Shape shape;
  std::vector<std::string> slots;  // "Adagrad": stored as "<name>/Adagrad", in the same shape
  bool operator==(const VariableInfo&) const = default;
};

// Where an optimizer's clock stands. The powers are written as hexadecimal floating point: exact.
struct ClockState {
  uint64_t applies = 0;
  double beta1_power = 1;
  double beta2_power = 1;
  bool operator==(const ClockState&) const = default;
};

struct Manifest {
  std::string job;
  uint64_t global_step = 0;  // how many updates the values have had (async: those on ps/0)
  uint64_t seed = 0;
  std::vector<uint64_t> worker_batches;  // per worker: the count of the batch that it takes next
  std::string optimizer;                 // as text, compared as text: "adam beta1=0.9 ..."
  std::vector<ClockState> clocks;        // one for each ps task that wrote this checkpoint
  std::string model_fingerprint;
  std::string data;  // description of the training data
  std::vector<VariableInfo> variables;
  // How long the job has trained, over all its processes, by the monotonic clock. Decides which
  // checkpoints are kept for good.
  double run_seconds = 0;
  std::string created;  // wall clock, a label
  std::string dtf_version;
  std::map<std::string, std::string> extra;  // for the caller
  std::vector<ShardFile> shards;             // one for each ps task, in their order
  // The folder in which they stay with the ps (staying_shards.h); empty: they are beside the
  // manifest.
  std::string stays_in{};
  bool operator==(const Manifest&) const = default;
};

// The file's bytes.
// Errors: kBadConfig with manifestProblem().
std::string encodeManifest(const Manifest& manifest);

// Checks the checksum, the form and manifestProblem().
// Errors: kBadData beginning with `where`.
Manifest decodeManifest(std::string_view bytes, std::string_view where);

// What the decoder does once the checksum is right; for fuzzing, which can't guess one.
Manifest decodeManifestJson(std::string_view json, std::string_view where);

// The parts tile every variable and every slot exactly, names are names, files are
// shardFileName(), ranges lie inside their files. Empty when all of that holds, else the reason.
std::string manifestProblem(const Manifest& manifest);

// Why `saved` can't be restored into a job that wants `wanted`, for a person, one line for each
// difference: variables that are missing, extra, of another shape, another optimizer (whose slots
// would be meaningless). Empty when it can. Only variables and optimizer are compared: other
// numbers of ps and of workers, another seed or other data are the caller's business.
std::string manifestDifference(const Manifest& saved, const Manifest& wanted);

}  // namespace dtf::checkpoint
