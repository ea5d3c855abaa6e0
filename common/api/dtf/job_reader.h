#pragma once

// Reads the parameters of a job of dtf-launch while it trains.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tensor.h"

namespace dtf {
inline namespace v1 {

// take() keeps one version of all parameters on the tasks that hold them; read() fetches variables
// of that version, however far the training is by then. The training never waits for a reader.
//
//   dtf::JobReader job("cluster.yaml");
//   while (job.take() < 1000) evaluate(job.read("dense/kernel"));
//
// Threads: one at a time.
// Blocks: on the tasks.
// Errors: as the functions dtf_job_reader_* in <dtf/dtf.h>.
class JobReader {
 public:
  // `keys`: the folder of the job's keys; empty: the one that the file names.
  explicit JobReader(const std::string& cluster_file, const std::string& keys = "") {
    dtf_job_reader* made = nullptr;
    check(dtf_job_reader_open(cluster_file.c_str(), keys.c_str(), &made));
    handle_.reset(made);
  }

  // Takes the newest version, which replaces the one before, and returns its step. Waits for tasks
  // that are not there for `seconds` in all.
  uint64_t take(double seconds = 10) {
    uint64_t step = 0;
    check(dtf_job_reader_take(handle_.get(), seconds, &step));
    return step;
  }
  // Returns the names of the variables; empty before the first take().
  std::vector<std::string> variables() const {
    std::vector<std::string> names;
    for (size_t i = 0; i < dtf_job_reader_count(handle_.get()); ++i)
      names.emplace_back(dtf_job_reader_variable(handle_.get(), i));
    return names;
  }
  // Returns a variable of the version that take() took.
  Tensor read(const std::string& variable) const {
    dtf_tensor* value = nullptr;
    check(dtf_job_reader_read(handle_.get(), variable.c_str(), &value));
    return Tensor(value);
  }
  // Returns the state of each task as JSON: {"ps/0": {...}, "worker/0": null}. null: it has not
  // replied.
  std::string status() const {
    std::string json(kStatusBytes, 0);
    size_t bytes = 0;
    while (true) {
      check(dtf_job_reader_status(handle_.get(), json.data(), json.size(), &bytes));
      const bool fits = bytes <= json.size();
      json.resize(fits ? bytes - 1 : bytes);
      if (fits) return json;
    }
  }

 private:
  static constexpr size_t kStatusBytes = 1 << 14;
  struct Free {
    void operator()(dtf_job_reader* reader) const { dtf_job_reader_free(reader); }
  };
  std::unique_ptr<dtf_job_reader, Free> handle_;
};

}  // namespace v1
}  // namespace dtf
