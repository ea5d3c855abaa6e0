#pragma once

// Checkpoints of a session's variables: TensorFlow's Saver, in the format of dtf's jobs.

#include <cstdint>
#include <memory>
#include <string>

#include "session.h"

namespace dtf {
inline namespace v1 {

struct SaverOptions {
  std::string job = "graph";  // the name in the checkpoint, by which a job goes on from it
  std::string global_step = "global_step";  // the name of the counter of steps
  int64_t max_to_keep = 5;                  // newest checkpoints in a folder; -1: all
};

// Threads: one at a time.
// Blocks: on the tasks and on the disk.
// Errors: as dtf_saver_save() and dtf_saver_restore() in <dtf/dtf.h>.
class Saver {
 public:
  explicit Saver(const SaverOptions& options = {}) {
    dtf_saver_options how{};
    how.size = sizeof(how);
    how.job = options.job.c_str();
    how.global_step = options.global_step.c_str();
    how.max_to_keep = options.max_to_keep;
    dtf_saver* made = nullptr;
    check(dtf_saver_new(&how, &made));
    handle_.reset(made);
  }

  // Saves all variables with their slots and counters in `folder`/step-N and returns that path. N
  // is the global step; `step`: for a graph without one.
  std::string save(Session& session, const std::string& folder, uint64_t step = 0) {
    size_t bytes = 0;
    std::string path(kPathMax, 0);
    check(dtf_saver_save(handle_.get(), session.get(), folder.c_str(), step, path.data(),
                         path.size(), &bytes));
    return cut(std::move(path), bytes);
  }
  // Sets all variables from a checkpoint, or from the newest one in a folder; returns its step.
  uint64_t restore(Session& session, const std::string& path) {
    uint64_t step = 0;
    check(dtf_saver_restore(handle_.get(), session.get(), path.c_str(), &step));
    return step;
  }
  // Returns the path of the newest whole checkpoint in a folder; empty if there is none.
  std::string latestCheckpoint(const std::string& folder) {
    size_t bytes = 0;
    std::string path(kPathMax, 0);
    check(dtf_saver_latest(handle_.get(), folder.c_str(), path.data(), path.size(), &bytes));
    return cut(std::move(path), bytes);
  }

 private:
  static constexpr size_t kPathMax = 1 << 16;  // far beyond the system's limit
  static std::string cut(std::string path, size_t bytes) {
    if (bytes > path.size()) throw Error(DTF_CANNOT_WRITE, "the path of a checkpoint is too long");
    path.resize(bytes - 1);
    return path;
  }

  struct Free {
    void operator()(dtf_saver* saver) const { dtf_saver_free(saver); }
  };
  std::unique_ptr<dtf_saver, Free> handle_;
};

}  // namespace v1
}  // namespace dtf
