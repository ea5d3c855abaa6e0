#pragma once

// Writes an event file beside the training: callers leave what they measured in a bounded queue,
// and a thread encodes it and writes it. What finds no room is dropped and counted, and a disk that
// fails costs the summaries, never the training.

#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "common/base/error.h"
#include "common/base/file_system.h"
#include "common/base/mutex.h"
#include "common/base/thread.h"
#include "common/summary/event.h"

namespace dtf::summary {

struct EventWriterStatus {
  uint64_t written = 0;  // events
  uint64_t dropped = 0;  // the queue was full
  uint64_t failed = 0;   // the disk refused them
  std::string degraded;  // why the last one failed; empty: it didn't
};

// Owns: the file events.out.tfevents.<seconds>.<host>[.<n>] in `folder`, made with the first event;
// a thread.
// Borrows: `file_system`.
// Threads: any.
// Blocks: only finish() and the destructor, until everything queued is written.
// Errors: none are thrown. After one the next event starts a new file: the old one may end in half
// a record, behind which no reader looks.
class EventWriter {
 public:
  // Of values that wait to be put in buckets; one summary is always taken.
  static constexpr size_t kQueueBytesMax = size_t{64} << 20;
  static constexpr size_t kQueueEventsMax = 256;

  EventWriter(FileSystem& file_system, std::filesystem::path folder);
  ~EventWriter();

  void add(uint64_t step, StepSummary summary);
  void addGraph(std::string graph_def);
  void addSession(uint64_t step, SessionStatus status, std::string checkpoint_path = {});

  EventWriterStatus status();

  // Waits until everything queued is written. What is added later is dropped.
  EventWriterStatus finish();

 private:
  struct Session {
    SessionStatus status;
    std::string checkpoint_path;
  };
  struct Graph {
    std::string graph_def;
  };
  struct Item {
    double wall_time = 0;
    uint64_t step = 0;
    size_t bytes = 0;
    std::variant<StepSummary, Graph, Session> content;
  };

  void push(Item item);
  void run();
  void write(const Item& item);
  void open();
  static std::string encode(const Item& item);

  FileSystem& file_system_;
  const std::filesystem::path folder_;
  std::unique_ptr<WritableFile> file_;  // the thread's

  Mutex mutex_;
  CondVar changed_;
  std::deque<Item> queue_ DTF_GUARDED_BY(mutex_);
  size_t queued_bytes_ DTF_GUARDED_BY(mutex_) = 0;
  bool ending_ DTF_GUARDED_BY(mutex_) = false;
  EventWriterStatus status_ DTF_GUARDED_BY(mutex_);
  Thread thread_;  // last
};

}  // namespace dtf::summary
