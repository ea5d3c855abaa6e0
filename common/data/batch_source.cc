#include "common/data/batch_source.h"

#include "common/base/check.h"

namespace dtf::data {

BatchSource::BatchSource(BatchReader& reader, int64_t batch_size, ReadAhead ahead)
    : reader_(reader), batch_size_(batch_size), ahead_(ahead) {
  batches_[current_] = Batch(reader.dataset().parts(), batch_size);
  if (ahead == ReadAhead::kNo) return;
  batches_[1 - current_] = Batch(reader.dataset().parts(), batch_size);
  thread_ = Thread("read-ahead", [this] { run(); });
}

BatchSource::~BatchSource() {
  const MutexLock lock(mutex_);
  ends_ = true;
  changed_.notifyAll();
}

void BatchSource::waitUntilIdle() {
  while (asked_) changed_.wait(mutex_);
}

const Batch& BatchSource::read(uint64_t wanted, uint64_t next) {
  const MutexLock lock(mutex_);
  if (ahead_ == ReadAhead::kNo) {
    if (ready_ == wanted) {
      current_ = 1 - current_;
    } else {
      reader_.read(wanted, batches_[current_]);
    }
    ready_.reset();
    return batches_[current_];
  }
  waitUntilIdle();
  DTF_CHECK(!ends_);
  if (ready_ != wanted) reader_.read(wanted, batches_[1 - current_]);
  current_ = 1 - current_;
  ready_.reset();
  asked_ = next;
  changed_.notifyAll();
  return batches_[current_];
}

const Batch& BatchSource::peek(uint64_t batch) {
  const MutexLock lock(mutex_);
  waitUntilIdle();
  Batch& other = batches_[1 - current_];
  if (other.parts.empty()) other = Batch(reader_.dataset().parts(), batch_size_);
  if (ready_ != batch) reader_.read(batch, other);
  ready_ = batch;
  return other;
}

// BatchReader::read() throws nothing: opening a data set finds its errors.
void BatchSource::run() {
  for (;;) {
    uint64_t number = 0;
    Batch* batch = nullptr;
    {
      const MutexLock lock(mutex_);
      while (!asked_ && !ends_) changed_.wait(mutex_);
      if (ends_) return;
      number = *asked_;
      batch = &batches_[1 - current_];
    }
    reader_.read(number, *batch);
    const MutexLock lock(mutex_);
    DTF_CHECK(asked_ == number);
    asked_.reset();
    ready_ = number;
    changed_.notifyAll();
  }
}

}  // namespace dtf::data
