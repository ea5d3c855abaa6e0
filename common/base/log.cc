#include "common/base/log.h"

#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "common/base/stderr_sink.h"
#include "common/base/text.h"

namespace dtf::log {

namespace {

// ISO 8601 with the offset from UTC, so that logs of hosts in two zones, or of two days, sort.
constexpr char kTimeAndLevel[] = "%Y-%m-%dT%H:%M:%S.%e%z %l ";

std::atomic<Level> current_level{Level::kInfo};
std::string tool;  // see initForTool(); empty: a daemon, whose lines have a time

std::string_view levelText(Level level) {
  switch (level) {
    case Level::kDebug:
      return "debug: ";
    case Level::kInfo:
      return "";
    case Level::kWarning:
      return "warning: ";
    case Level::kError:
      return "error: ";
  }
  return "";
}

// "event=files_left_out files=1" -> "dtf-launch: warning: files left out: files=1"
std::string lineOf(Level level, std::string_view text) {
  if (tool.empty()) return std::string(text);
  constexpr std::string_view kEvent = "event=";
  std::string said(text);
  if (text.starts_with(kEvent)) {
    const std::string_view rest = text.substr(kEvent.size());
    const size_t end = std::min(rest.find_first_of(" \n"), rest.size());
    said = rest.substr(0, end);
    std::replace(said.begin(), said.end(), '_', ' ');
    if (end < rest.size()) said += ":" + std::string(rest.substr(end));
  }
  return fmt::format("{}: {}{}", tool, levelText(level), said);
}

// The sink of spdlog that writes to StderrSink; called with spdlog's mutex held.
class Sink final : public spdlog::sinks::base_sink<std::mutex> {
 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    if (sink_.dropped() > 0) {
      const std::string note = "event=log_dropped lines=" + std::to_string(sink_.dropped()) +
                               " reason=\"nobody read this log\"";
      const std::string line = lineOf(Level::kWarning, note);
      if (send({message.logger_name, spdlog::level::warn, line})) sink_.forgetDropped();
    }
    send(message);
  }
  void flush_() override {}

  bool send(const spdlog::details::log_msg& message) {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    return sink_.write({line.data(), line.size()});
  }

  StderrSink sink_;
};

spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> instance = [] {
    auto made = std::make_shared<spdlog::logger>("dtf", std::make_shared<Sink>());
    made->set_pattern(std::string(kTimeAndLevel) + "%v");
    made->set_level(spdlog::level::debug);
    return made;
  }();
  return *instance;
}

}  // namespace

void init(std::string_view task, Level level) {
  current_level = level;
  tool.clear();
  logger().set_pattern(kTimeAndLevel +
                       (task.empty() ? std::string("%v") : fmt::format("task={} %v", task)));
}

void initForTool(std::string_view program) {
  tool = program;
  logger().set_pattern("%v");
}

bool parseLevel(std::string_view text, Level& level) {
  if (text == "debug")
    level = Level::kDebug;
  else if (text == "info")
    level = Level::kInfo;
  else if (text == "warning")
    level = Level::kWarning;
  else if (text == "error")
    level = Level::kError;
  else
    return false;
  return true;
}

bool enabled(Level level) {
  return level >= current_level.load(std::memory_order_relaxed);
}

void write(Level level, std::string_view text) {
  if (!enabled(level)) return;
  const std::string line = printableLines(lineOf(level, text), "  ");
  switch (level) {
    case Level::kDebug:
      logger().debug("{}", line);
      return;
    case Level::kInfo:
      logger().info("{}", line);
      return;
    case Level::kWarning:
      logger().warn("{}", line);
      return;
    case Level::kError:
      StderrSink::awaitRoom(kErrorPatience);
      logger().error("{}", line);
      return;
  }
}

}  // namespace dtf::log
