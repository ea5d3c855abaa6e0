#pragma once

// Writes an event file beside the training. Callers put measurements into a bounded queue; a thread
// encodes and writes them. Items without room are dropped and counted. A failing disk costs the
// summaries, never the training.

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
  uint64_t dropped = 0;  // because the queue was full
  uint64_t failed = 0;   // because of the disk
  std::string degraded;  // why the last write failed; empty if it succeeded
};

// Owns: a thread, and the file events.out.tfevents.<seconds>.<host>[.<n>] in `folder`, created with
// the first event.
// Borrows: `file_system`.
// Threads: any.
// Blocks: only finish() and the destructor, until everything queued is written.
// Errors: none are thrown. After a failure the next event starts a new file: the old one may end in
// half a record, and readers stop there.
class EventWriter {
 public:
  // Bytes of values that wait for encoding; one summary is always accepted.
  static constexpr size_t kQueueBytesMax = size_t{64} << 20;
  static constexpr size_t kQueueEventsMax = 256;

  EventWriter(FileSystem& file_system, std::filesystem::path folder);
  ~EventWriter();

  void add(uint64_t step, StepSummary summary);
  void addGraph(std::string graph_def);
  void addSession(uint64_t step, SessionStatus status, std::string checkpoint_path = {});

  EventWriterStatus status();

  // Waits until everything queued is written. Items added later are dropped.
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
  std::unique_ptr<WritableFile> file_;  // used by the thread only

  Mutex mutex_;
  CondVar changed_;
  std::deque<Item> queue_ DTF_GUARDED_BY(mutex_);
  size_t queued_bytes_ DTF_GUARDED_BY(mutex_) = 0;
  bool ending_ DTF_GUARDED_BY(mutex_) = false;
  EventWriterStatus status_ DTF_GUARDED_BY(mutex_);
  Thread thread_;  // last
};

}  // namespace dtf::summary
