#include "common/summary/event_writer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>

#include "common/base/check.h"
#include "common/base/log.h"

namespace dtf::summary {

namespace {

constexpr int kNamesMax = 1000;  // files within one second

double wallTime() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string hostName() {
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) != 0 || name[0] == '\0') return "localhost";
  return name;
}

size_t bytesOf(const StepSummary& summary) {
  size_t bytes = 0;
  for (const StepSummary::Values& measured : summary.histograms)
    bytes += measured.values.size() * sizeof(float);
  for (const StepSummary::Image& measured : summary.images) bytes += measured.pixels.size();
  return bytes;
}

void makeFolders(FileSystem& file_system, const std::filesystem::path& folder) {
  if (folder.empty() || file_system.exists(folder)) return;
  makeFolders(file_system, folder.parent_path());
  file_system.makeFolder(folder);
}

}  // namespace

EventWriter::EventWriter(FileSystem& file_system, std::filesystem::path folder)
    : file_system_(file_system), folder_(std::move(folder)) {
  thread_ = Thread("dtf-events", [this] { run(); });
}

EventWriter::~EventWriter() {
  finish();
}

EventWriterStatus EventWriter::finish() {
  {
    MutexLock lock(mutex_);
    ending_ = true;
    changed_.notifyAll();
  }
  thread_.join();
  return status();
}

void EventWriter::add(uint64_t step, StepSummary summary) {
  const size_t bytes = bytesOf(summary);
  push({wallTime(), step, bytes, std::move(summary)});
}

void EventWriter::addGraph(std::string graph_def) {
  DTF_CHECK(!graph_def.empty());
  const size_t bytes = graph_def.size();
  push({wallTime(), 0, bytes, Graph{std::move(graph_def)}});
}

void EventWriter::addSession(uint64_t step, SessionStatus status, std::string checkpoint_path) {
  push({wallTime(), step, 0, Session{status, std::move(checkpoint_path)}});
}

EventWriterStatus EventWriter::status() {
  MutexLock lock(mutex_);
  return status_;
}

void EventWriter::push(Item item) {
  MutexLock lock(mutex_);
  const bool has_room = !ending_ && queue_.size() < kQueueEventsMax &&
                        (queued_bytes_ == 0 || queued_bytes_ + item.bytes <= kQueueBytesMax);
  if (!has_room) {
    if (status_.dropped++ == 0)
      log::warning("event=summaries_dropped reason=\"{} events wait for the disk\"", queue_.size());
    return;
  }
  queued_bytes_ += item.bytes;
  DTF_CHECK(queue_.size() < kQueueEventsMax);
  queue_.push_back(std::move(item));
  changed_.notifyOne();  // only thread_ waits
}

// An item counts towards the queue until it is written.
void EventWriter::run() {
  for (;;) {
    Item item;
    {
      MutexLock lock(mutex_);
      while (queue_.empty() && !ending_) changed_.wait(mutex_);
      if (queue_.empty()) return;
      item = std::move(queue_.front());
      queue_.pop_front();
    }
    write(item);
    MutexLock lock(mutex_);
    DTF_CHECK(queued_bytes_ >= item.bytes);
    queued_bytes_ -= item.bytes;
  }
}

void EventWriter::write(const Item& item) {
  try {
    if (file_ == nullptr) open();
    const std::string record = encodeRecord(encode(item));
    file_->write(record.data(), record.size());
    MutexLock lock(mutex_);
    ++status_.written;
    status_.degraded.clear();
  } catch (const Error& error) {
    file_ = nullptr;
    MutexLock lock(mutex_);
    if (status_.failed++ == 0)
      log::warning("event=summaries_failed degraded=summaries reason=\"{}\"", error.message());
    status_.degraded = error.message();
  }
}

void EventWriter::open() {
  DTF_CHECK(file_ == nullptr);
  makeFolders(file_system_, folder_);
  const double now = wallTime();
  const std::string name =
      fmt::format("events.out.tfevents.{:010}.{}", static_cast<int64_t>(now), hostName());
  std::filesystem::path path = folder_ / name;
  for (int n = 1; file_system_.exists(path) && n < kNamesMax; ++n)
    path = folder_ / fmt::format("{}.{}", name, n);
  file_ = file_system_.create(path);
  const std::string record = encodeRecord(fileVersionEvent(now));
  file_->write(record.data(), record.size());
}

std::string EventWriter::encode(const Item& item) {
  if (const auto* summary = std::get_if<StepSummary>(&item.content))
    return summaryEvent(item.wall_time, item.step, *summary);
  if (const auto* graph = std::get_if<Graph>(&item.content))
    return graphEvent(item.wall_time, graph->graph_def);
  const Session& session = std::get<Session>(item.content);
  return sessionEvent(item.wall_time, item.step, session.status, session.checkpoint_path);
}

}  // namespace dtf::summary
