#pragma once

// manifest.json: the contents of a checkpoint, their files and checksums. It is written last: a
// checkpoint exists only if its manifest verifies. CHECKPOINT.md gives the bytes.

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

// The clock of an optimizer. The powers are written as hexadecimal floating point: exact.
struct ClockState {
  uint64_t applies = 0;
  double beta1_power = 1;
  double beta2_power = 1;
  bool operator==(const ClockState&) const = default;
};

struct Manifest {
  std::string job;
  uint64_t global_step = 0;  // updates applied to the values (async: on ps/0)
  uint64_t seed = 0;
  std::vector<uint64_t> worker_batches;  // per worker: the index of its next batch
  std::string optimizer;                 // as text, compared as text: "adam beta1=0.9 ..."
  std::vector<ClockState> clocks;        // one for each ps task that wrote this checkpoint
  std::string model_fingerprint;
  std::string data;  // description of the training data
  std::vector<VariableInfo> variables;
  // Training time of the job, over all its processes, by the monotonic clock. Decides which
  // checkpoints are kept for good.
  double run_seconds = 0;
  std::string created;  // wall clock, a label
  std::string dtf_version;
  std::map<std::string, std::string> extra;  // for the caller
  std::vector<ShardFile> shards;             // one for each ps task, in their order
  // The folder of the shards that stay with the ps (staying_shards.h); empty: the shards are beside
  // the manifest.
  std::string stays_in{};
  bool operator==(const Manifest&) const = default;
};

// Returns the bytes of the file.
// Errors: kBadConfig with manifestProblem(), or for a text that isn't UTF-8, or for a file above
// kManifestBytesMax.
std::string encodeManifest(const Manifest& manifest);

// Returns the manifest after it has checked the checksum, the form and manifestProblem().
// Errors: kBadData beginning with `where`.
Manifest decodeManifest(std::string_view bytes, std::string_view where);

// Does the same without the checksum; for fuzzing, which can't guess one.
Manifest decodeManifestJson(std::string_view json, std::string_view where);

// Returns the first violated rule, or an empty text:
// - the parts tile every variable and every slot exactly,
// - variables, slots and folders have valid names, and files are called shardFileName(),
// - the parts lie inside their files, without gaps,
// - optimizer clocks and run_seconds are finite.
std::string manifestProblem(const Manifest& manifest);

// Returns why `saved` can't be restored into a job with `wanted`, one line for each difference:
// - a variable is missing, extra, or has another shape or other slots,
// - the optimizer differs, so its slots would be meaningless.
// Empty: it can. The caller checks the rest: ps and workers, seed, data.
std::string manifestDifference(const Manifest& saved, const Manifest& wanted);

}  // namespace dtf::checkpoint
