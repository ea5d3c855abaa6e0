#pragma once

// The batches of a step. If reading one takes time, a thread reads the next batch while the step
// computes.

#include <array>
#include <cstdint>
#include <optional>

#include "common/base/mutex.h"
#include "common/base/thread.h"
#include "common/data/batch_order.h"

namespace dtf::data {

// Whether a step should read ahead.
enum class ReadAhead : uint8_t {
  kNo,  // copying a small batch takes less time than waking a thread
  kYes
};

// Owns: the current batch, the next one with peek() or read-ahead, and with read-ahead a thread.
// Borrows: the reader, which must outlive it.
// Threads: one thread calls it.
// Blocks: until the batch is read.
// Errors: none; BatchReader::read() has none.
class BatchSource {
 public:
  // `batch_size`: of the largest batch that will be read.
  BatchSource(BatchReader& reader, int64_t batch_size, ReadAhead ahead);
  ~BatchSource();
  BatchSource(const BatchSource&) = delete;
  BatchSource& operator=(const BatchSource&) = delete;

  // Returns batch `wanted`, valid until the next read(). `next` is most likely the next call's
  // `wanted`: a wrong guess only costs the time of reading. Allocates nothing.
  const Batch& read(uint64_t wanted, uint64_t next);

  // Returns a batch that read() is likely to return soon, beside the current one; both are valid
  // until the next read().
  const Batch& peek(uint64_t batch);

 private:
  void run();
  void waitUntilIdle() DTF_REQUIRES(mutex_);

  BatchReader& reader_;  // used by the thread while it reads a batch, else by the caller
  const int64_t batch_size_;
  std::array<Batch, 2> batches_;
  size_t current_ = 0;  // the step's batch; the other one is being read
  const ReadAhead ahead_;

  Mutex mutex_;
  CondVar changed_;
  std::optional<uint64_t> asked_ DTF_GUARDED_BY(mutex_);  // being read
  std::optional<uint64_t> ready_ DTF_GUARDED_BY(mutex_);  // in the other batch
  bool ends_ DTF_GUARDED_BY(mutex_) = false;
  Thread thread_;  // last: it uses all of the above
};

}  // namespace dtf::data
