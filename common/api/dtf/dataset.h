#pragma once

// The data of a job in this process: batches by step, or one after another.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tensor.h"

namespace dtf {
inline namespace v1 {

struct DatasetOptions {
  std::string folder = {};   // where relative paths start; empty: the working directory
  Dims input_shape = {};     // of one example: for folders of images, and libsvm
  int64_t rank = 0, of = 1;  // this shard, from 0, and the number of shards
  int64_t epochs = 0;        // 0: without end
  bool evaluation = false;   // the examples of `eval`, or that side of `eval_split`
};

// Owns the examples, in memory or mapped from disk.
// Threads: one at a time.
// Blocks: on the disk.
// Errors: as dtf_dataset_open() and the others in <dtf/dtf.h>.
class Dataset {
 public:
  struct Part {
    std::string name;  // "features", "labels", or the name of categories
    dtf_dtype dtype;
    Dims dims;  // of one example
  };
  // A tensor for each part, [examples, ...].
  struct Batch {
    std::vector<Tensor> parts;
    const Tensor& features() const { return parts.at(0); }
    const Tensor& labels() const { return parts.at(1); }
  };

  // `settings`: YAML with the keys of `data` in a job's file; empty: the embedded digits.
  explicit Dataset(const std::string& settings, const DatasetOptions& options = {}) {
    dtf_dataset_options how{};
    how.size = sizeof(how);
    how.folder = options.folder.c_str();
    how.input_shape = options.input_shape.data();
    how.input_rank = options.input_shape.size();
    how.rank = options.rank;
    how.of = options.of;
    how.epochs = options.epochs;
    how.evaluation = options.evaluation ? 1 : 0;
    dtf_dataset* made = nullptr;
    check(dtf_dataset_open(settings.c_str(), &how, &made));
    handle_.reset(made);
  }

  int64_t size() const { return dtf_dataset_examples(get()); }  // of all shards
  int64_t batchSize() const { return dtf_dataset_batch_size(get()); }
  std::vector<Part> parts() const {
    std::vector<Part> parts(dtf_dataset_parts(get()));
    for (size_t i = 0; i < parts.size(); ++i) {
      size_t rank = 0;
      parts[i].name = dtf_dataset_part(get(), i, &parts[i].dtype, nullptr, 0, &rank);
      parts[i].dims.resize(rank);
      dtf_dataset_part(get(), i, nullptr, parts[i].dims.data(), rank, nullptr);
    }
    return parts;
  }
  // The words of the classes, from class 0; empty: they are numbers.
  std::vector<std::string> classes() const {
    std::vector<std::string> words;
    while (const char* const word = dtf_dataset_class(get(), words.size())) words.push_back(word);
    return words;
  }

  // Returns this shard's batch of a global step, a function of the step alone.
  Batch batch(uint64_t global_step) {
    return taken(
        [&](dtf_tensor** values) { return dtf_dataset_batch(handle_.get(), global_step, values); });
  }
  // Returns the steps of all epochs, at least 1; 0: `epochs` is 0, they have no end.
  uint64_t steps() const { return dtf_dataset_steps(get()); }

  // Returns the next examples of this shard, as TensorFlow's next_batch().
  Batch nextBatch(int64_t n) {
    return taken(
        [&](dtf_tensor** values) { return dtf_dataset_next_batch(handle_.get(), n, values); });
  }
  uint64_t epochsCompleted() const { return dtf_dataset_epochs_completed(get()); }

  // Returns examples in their own order, unchanged by `augment`: for an evaluation.
  Batch slice(int64_t first, int64_t count) {
    return taken([&](dtf_tensor** values) {
      return dtf_dataset_slice(handle_.get(), first, count, values);
    });
  }

  const dtf_dataset* get() const { return handle_.get(); }

 private:
  template <class Read>
  Batch taken(const Read& read) {
    std::vector<dtf_tensor*> values(dtf_dataset_parts(get()));
    check(read(values.data()));
    Batch batch;
    batch.parts.reserve(values.size());
    for (dtf_tensor* const value : values) batch.parts.emplace_back(value);
    return batch;
  }
  struct Free {
    void operator()(dtf_dataset* dataset) const { dtf_dataset_free(dataset); }
  };
  std::unique_ptr<dtf_dataset, Free> handle_;
};

}  // namespace v1
}  // namespace dtf
