#include "launcher/log_fanin.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "common/base/error.h"
#include "launcher/console.h"

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

bool writeAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

}  // namespace

struct LogFanin::Stream {
  TaskId id;
  std::string prefix;
  std::filesystem::path path;
  Fd file;
  std::deque<std::string> tail;
  std::unique_ptr<LineSplitter> splitter;
  std::unique_ptr<PipeReader> reader;  // last: its callbacks use the rest
};

std::string logFileName(TaskId id, int attempt) {
  return std::string(jobName(id.job)) + "-" + std::to_string(id.index) + "." +
         std::to_string(attempt) + ".log";
}

LogFanin::LogFanin(boost::asio::io_context& io, std::filesystem::path folder,
                   std::vector<TaskId> tasks, bool color, OnLine on_line)
    : io_(io), folder_(std::move(folder)), on_line_(std::move(on_line)) {
  size_t width = 0;
  for (const TaskId id : tasks) width = std::max(width, id.name().size());
  for (size_t task = 0; task < tasks.size(); ++task) {
    streams_.push_back(std::make_unique<Stream>());
    streams_.back()->id = tasks[task];
    streams_.back()->prefix = prefixOf(tasks[task], task, width, color);
  }
}

LogFanin::~LogFanin() = default;

void LogFanin::add(size_t task, int attempt, Fd pipe) {
  Stream& stream = *streams_.at(task);
  stream.path = folder_ / logFileName(stream.id, attempt);
  stream.file = Fd(::open(stream.path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!stream.file.valid())
    throw Error(ErrorCode::kCannotWrite,
                "cannot write " + stream.path.string() + ": " + errnoText(errno));
  stream.splitter = std::make_unique<LineSplitter>(
      kLineBytesMax,
      [this, &stream](std::string_view line, bool cut) { onLine(stream, line, cut); });
  stream.reader = std::make_unique<PipeReader>(
      io_, std::move(pipe), [this, &stream](std::string_view bytes) { onBytes(stream, bytes); });
}

void LogFanin::finish(size_t task) {
  Stream& stream = *streams_.at(task);
  if (!stream.reader) return;
  stream.reader->drain();
  stream.splitter->flush();
  stream.reader.reset();
  stream.file.reset();
}

std::vector<std::string> LogFanin::tail(size_t task) const {
  const Stream& stream = *streams_.at(task);
  return {stream.tail.begin(), stream.tail.end()};
}

std::filesystem::path LogFanin::file(size_t task) const {
  return streams_.at(task)->path;
}

void LogFanin::onBytes(Stream& stream, std::string_view bytes) {
  if (stream.file.valid() && !writeAll(stream.file.get(), bytes)) {
    on_line_("dtf-launch: warning: the rest of " + stream.path.string() +
             " is lost: " + errnoText(errno));
    stream.file.reset();
  }
  stream.splitter->feed(bytes);
}

void LogFanin::onLine(Stream& stream, std::string_view line, bool cut) {
  std::string text = printable(line);
  if (cut) text += " ... (cut)";
  on_line_(stream.prefix + text);
  stream.tail.push_back(std::move(text));
  if (stream.tail.size() > kTailLines) stream.tail.pop_front();
}

}  // namespace dtf::launcher
