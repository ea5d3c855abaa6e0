#include "common/base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <memory>

namespace dtf::log {

namespace {

std::atomic<Level> current_level{Level::kInfo};

spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> instance = [] {
    auto made =
        std::make_shared<spdlog::logger>("dtf", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("%H:%M:%S.%e %^%l%$ %v");
    made->set_level(spdlog::level::debug);
    made->flush_on(spdlog::level::debug);
    return made;
  }();
  return *instance;
}

}  // namespace

void init(std::string_view task, Level level) {
  current_level = level;
  logger().set_pattern(task.empty() ? "%H:%M:%S.%e %l %v"
                                    : fmt::format("%H:%M:%S.%e %l task={} %v", task));
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

void write(Level level, std::string_view line) {
  if (!enabled(level)) return;
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
      logger().error("{}", line);
      return;
  }
}

}  // namespace dtf::log
