#include "launcher/log_fanin.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <system_error>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/text.h"
#include "launcher/console.h"
#include "launcher/task_line.h"

namespace dtf::launcher {

namespace {

// Readable on a dark and on a light background; neighbours differ.
constexpr std::array kColors = {"\x1b[36m", "\x1b[33m", "\x1b[32m",
                                "\x1b[35m", "\x1b[34m", "\x1b[31m"};
constexpr const char* kColorOff = "\x1b[0m";

std::string prefixOf(TaskId id, size_t task, size_t width, bool color) {
  std::string name = id.name();
  name.resize(std::max(width, name.size()), ' ');
  if (!color) return name + " | ";
  return kColors[task % kColors.size()] + name + " |" + kColorOff + " ";
}

// The number in "worker-1.12.log" and "dtf-launch.12.log"; 0 for any other name.
int attemptOf(const std::string& file) {
  const std::vector<std::string> parts = split(file, '.');
  if (parts.size() != 3 || parts[2] != "log") return 0;
  int attempt = 0;
  const char* end = parts[1].data() + parts[1].size();
  const auto [stop, error] = std::from_chars(parts[1].data(), end, attempt);
  return error == std::errc() && stop == end ? attempt : 0;
}

}  // namespace

struct LogFanin::Stream {
  TaskId id;
  std::string prefix;
  std::filesystem::path path;
  Fd file;
  uint64_t lost_bytes = 0;  // since the disk took the last ones
  bool last_shown = false;  // the line before this one, on the console
  std::deque<std::string> tail;
  std::unique_ptr<LineSplitter> splitter;  // of the process that runs
};

std::string logFileName(TaskId id, int attempt) {
  return std::string(jobName(id.job)) + "-" + std::to_string(id.index) + "." +
         std::to_string(attempt) + ".log";
}

int newestAttempt(const std::filesystem::path& folder) {
  int newest = 0;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("dtf-launch.")) newest = std::max(newest, attemptOf(name));
  }
  return newest;
}

int nextAttempt(const std::filesystem::path& folder) {
  int newest = 0;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored))
    newest = std::max(newest, attemptOf(entry.path().filename().string()));
  DTF_CHECK(newest >= 0);
  return newest + 1;
}

LogFanin::LogFanin(std::filesystem::path folder, std::vector<TaskId> tasks, bool color,
                   bool details, OnLine on_line)
    : folder_(std::move(folder)), details_(details), on_line_(std::move(on_line)) {
  DTF_CHECK(on_line_ && !tasks.empty());
  size_t width = 0;
  for (const TaskId id : tasks) width = std::max(width, id.name().size());
  for (size_t task = 0; task < tasks.size(); ++task) {
    streams_.push_back(std::make_unique<Stream>());
    streams_.back()->id = tasks[task];
    streams_.back()->prefix = prefixOf(tasks[task], task, width, color);
  }
}

LogFanin::~LogFanin() = default;

void LogFanin::add(size_t task, int attempt) {
  Stream& stream = *streams_.at(task);
  DTF_CHECK_MSG(!stream.splitter && attempt >= 1, stream.id.name());
  const bool is_first = stream.path.empty();
  stream.path = folder_ / logFileName(stream.id, attempt);
  stream.lost_bytes = 0;
  stream.splitter = std::make_unique<LineSplitter>(
      kLineBytesMax,
      [this, &stream](std::string_view line, bool cut) { onLine(stream, line, cut); });
  if (!open(stream)) {
    if (is_first) failWrite(stream.path, errno);
    warnOfLoss(stream);
  }
}

void LogFanin::finish(size_t task) {
  Stream& stream = *streams_.at(task);
  if (!stream.splitter) return;
  stream.splitter->flush();
  stream.splitter.reset();
  stream.file.reset();
}

std::vector<std::string> LogFanin::tail(size_t task) const {
  const Stream& stream = *streams_.at(task);
  return {stream.tail.begin(), stream.tail.end()};
}

std::filesystem::path LogFanin::file(size_t task) const {
  return streams_.at(task)->path;
}

void LogFanin::feed(size_t task, std::string_view bytes) {
  Stream& stream = *streams_.at(task);
  DTF_CHECK_MSG(stream.splitter != nullptr, stream.id.name());
  save(stream, bytes);
  stream.splitter->feed(bytes);
}

// O_EXCL follows no link: the name is predictable.
bool LogFanin::open(Stream& stream) {
  stream.file = Fd(::open(stream.path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  return stream.file.valid();
}

void LogFanin::warnOfLoss(const Stream& stream) {
  on_line_("dtf-launch: warning: cannot write " + stream.path.string() + ": " + errnoText(errno) +
               "; trying again",
           "");
}

void LogFanin::save(Stream& stream, std::string_view bytes) {
  DTF_CHECK_MSG(!stream.path.empty(), stream.id.name());
  if (!stream.file.valid() && !open(stream)) {
    stream.lost_bytes += bytes.size();
    return;
  }
  if (stream.lost_bytes > 0) {
    const std::string note = "\ndtf-launch: " + std::to_string(stream.lost_bytes) +
                             " bytes are missing here: they could not be written\n";
    if (writeAll(stream.file.get(), note) > 0) {
      stream.lost_bytes += bytes.size();
      return;
    }
    on_line_("dtf-launch: " + stream.path.string() + " is written again; " +
                 std::to_string(stream.lost_bytes) + " bytes of it are lost",
             "");
    stream.lost_bytes = 0;
  }
  stream.lost_bytes = writeAll(stream.file.get(), bytes);
  if (stream.lost_bytes > 0) warnOfLoss(stream);
}

void LogFanin::onLine(Stream& stream, std::string_view line, bool cut) {
  TaskLine read = readTaskLine(printable(line));
  if (cut) read.text += " ... (cut)";
  if (read.kind != LineKind::kMore)
    stream.last_shown =
        read.kind == LineKind::kAlarm ||
        (details_ && (read.kind == LineKind::kDetail || read.kind == LineKind::kFailed));
  if (stream.last_shown) on_line_(read.text, stream.prefix);
  stream.tail.push_back(std::move(read.text));
  if (stream.tail.size() > kTailLines) stream.tail.pop_front();
}

}  // namespace dtf::launcher
