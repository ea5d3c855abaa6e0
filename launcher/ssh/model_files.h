#pragma once

// The files of a trained model on the host of a task, as the launcher asks for them when the job
// has ended: those of a checkpoint, which may stay with the ps, and which kernels the run has
// chosen.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "common/base/file_system.h"
#include "common/checkpoint/manifest.h"

namespace dtf::launcher {

// Their names, from the run directory on.
std::string manifestName(uint64_t step);  // checkpoints/step-120/manifest.json
std::string shardName(uint64_t step, const std::string& file);  // checkpoints/step-120/FILE
std::string stayingShardName(const std::string& stays_in,
                             const std::string& file);  // shards/DIR/FILE
std::string kernelsName();

// Whether it is one of those: never a path out of the run directory.
bool isModelFile(std::string_view name);
bool isManifest(std::string_view name);  // of those

// One of them, from its first byte to its last.
// Owns: the open file.
// Threads: thread-compatible.
// Blocks: on the disk.
class ModelFileReader {
 public:
  // Null: there is no such file.
  // Errors: kBadData for a name of another kind, or a file that can't be read.
  static std::unique_ptr<ModelFileReader> open(FileSystem& file_system,
                                               const std::filesystem::path& run_dir,
                                               const std::string& name);

  uint64_t bytes() const { return file_->size(); }
  // What follows, so much at most; empty: that was all.
  // Errors: kBadData for a file that has become shorter.
  std::string next(size_t bytes_max);

 private:
  explicit ModelFileReader(std::unique_ptr<ReadableFile> file) : file_(std::move(file)) {}

  std::unique_ptr<ReadableFile> file_;
  uint64_t given_ = 0;
};

}  // namespace dtf::launcher
