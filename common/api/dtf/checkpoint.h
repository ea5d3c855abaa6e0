#pragma once

// The tensors of a checkpoint, of a Saver or of a job, without a graph.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "c_checkpoint.h"
#include "tensor.h"

namespace dtf {
inline namespace v1 {

// An open checkpoint. Owns no tensor. Immutable.
// Threads: thread-safe.
// Blocks: on the disk.
// Errors: as dtf_checkpoint_open() and dtf_checkpoint_read().
class Checkpoint {
 public:
  // `path`: FOLDER/step-N, or a folder for its newest whole checkpoint.
  explicit Checkpoint(const std::string& path) {
    dtf_checkpoint* made = nullptr;
    check(dtf_checkpoint_open(path.c_str(), &made));
    handle_.reset(made);
  }

  std::string path() const { return dtf_checkpoint_path(handle_.get()); }
  std::string job() const { return dtf_checkpoint_job(handle_.get()); }
  uint64_t step() const { return dtf_checkpoint_step(handle_.get()); }
  // Returns the names of variables, slots and counters.
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    while (const char* name = dtf_checkpoint_tensor(handle_.get(), names.size()))
      names.emplace_back(name);
    return names;
  }
  Tensor read(const std::string& name) const {
    dtf_tensor* value = nullptr;
    check(dtf_checkpoint_read(handle_.get(), name.c_str(), &value));
    return Tensor(value);
  }

 private:
  struct Free {
    void operator()(dtf_checkpoint* checkpoint) const { dtf_checkpoint_free(checkpoint); }
  };
  std::unique_ptr<dtf_checkpoint, Free> handle_;
};

}  // namespace v1
}  // namespace dtf
