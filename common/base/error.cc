#include "common/base/error.h"

#include <cstdlib>
#include <system_error>

#include "common/base/check.h"
#include "common/base/stderr_sink.h"

namespace dtf {

void checkFailed(const char* condition, const char* file, int line, const std::string& values) {
  // Without stdio: the process must end even if nothing reads stderr.
  StderrSink::awaitRoom(std::chrono::seconds(1));
  StderrSink().write(std::string(file) + ":" + std::to_string(line) +
                     ": internal error: check failed: " + condition + " " + values + "\n");
  std::abort();
}

namespace {

struct CodeInfo {
  int exit_code;
  std::string_view name;
};

CodeInfo infoOf(ErrorCode code) {
  switch (code) {
    case ErrorCode::kTrainingFailed:
      return {1, "training_failed"};
    case ErrorCode::kUsage:
      return {2, "usage"};
    case ErrorCode::kBadData:
      return {65, "bad_data"};
    case ErrorCode::kOutOfRange:
      return {66, "out_of_range"};
    case ErrorCode::kUnavailable:
      return {69, "unavailable"};
    case ErrorCode::kInternal:
      return {70, "internal"};
    case ErrorCode::kCannotWrite:
      return {73, "cannot_write"};
    case ErrorCode::kPermission:
      return {77, "permission"};
    case ErrorCode::kBadConfig:
      return {78, "bad_config"};
    case ErrorCode::kDeadline:
      return {124, "deadline"};
  }
  return {70, "internal"};
}

}  // namespace

int exitCode(ErrorCode code) {
  return infoOf(code).exit_code;
}

std::string_view errorCodeName(ErrorCode code) {
  return infoOf(code).name;
}

std::string errnoText(int errno_value) {
  return std::generic_category().message(errno_value) + " (" + std::to_string(errno_value) + ")";
}

}  // namespace dtf
