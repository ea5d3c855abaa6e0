#pragma once

// Batches for a step that reads them where they lie, and, where reading one takes time, read ahead:
// the next batch is made on a thread of its own while the step computes.

#include <array>
#include <cstdint>
#include <optional>

#include "common/base/mutex.h"
#include "common/base/thread.h"
#include "common/data/batch_order.h"

namespace dtf::data {

// Whether a step should read ahead.
enum class ReadAhead : uint8_t {
  kNo,  // a small batch in memory is copied in less time than two threads need to tell each other
        // of it
  kYes
};

// Owns: the batch that is read, the next one where somebody looks ahead, and with read-ahead a
// thread.
// Borrows: the reader, which must outlive it.
// Threads: one thread calls it.
// Blocks: until the batch is there.
// Errors: those of the reader, from the call that wants the batch.
class BatchSource {
 public:
  // `batch_size`: of the largest batch that will be read.
  BatchSource(BatchReader& reader, int64_t batch_size, ReadAhead ahead);
  ~BatchSource();
  BatchSource(const BatchSource&) = delete;
  BatchSource& operator=(const BatchSource&) = delete;

  // Batch `wanted`, valid until the next read(). `next` is most likely the one that is wanted then:
  // a wrong guess costs the time of reading, nothing else. Allocates nothing.
  const Batch& read(uint64_t wanted, uint64_t next);

  // A batch that read() is likely to be asked for soon, beside the one that it gave last; both are
  // valid until the next read().
  const Batch& peek(uint64_t batch);

 private:
  void run();
  void waitUntilIdle() DTF_REQUIRES(mutex_);

  BatchReader& reader_;  // of whoever makes a batch: the thread while it does, else the caller
  const int64_t batch_size_;
  std::array<Batch, 2> batches_;
  size_t current_ = 0;  // the one that the step reads; the other is being made
  const ReadAhead ahead_;

  Mutex mutex_;
  CondVar changed_;
  std::optional<uint64_t> asked_ DTF_GUARDED_BY(mutex_);  // being made
  std::optional<uint64_t> ready_ DTF_GUARDED_BY(mutex_);  // in the other batch
  bool ends_ DTF_GUARDED_BY(mutex_) = false;
  Thread thread_;  // last: it uses all of the above
};

}  // namespace dtf::data
