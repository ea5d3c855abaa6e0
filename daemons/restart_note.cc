#include "daemons/restart_note.h"

#include <cstdlib>
#include <system_error>

#include "common/base/checksum.h"
#include "common/base/error.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/text.h"

namespace dtf::daemons {

namespace {

constexpr uint64_t kBytesMax = 256 * 1024;  // the result has each metric of the last evaluation
constexpr size_t kChecksumBytes = 16;

}  // namespace

RestartNote::RestartNote(const std::filesystem::path& folder, const cluster::JobSpec& job)
    : file_(folder / "chief.note"),
      job_(job.job),
      run_dir_(std::filesystem::absolute(job.run_dir).lexically_normal()) {
  std::error_code error;
  if (!std::filesystem::exists(file_, error)) return;
  try {
    read();
  } catch (const Error& damaged) {
    log::warning("event=restart_note_ignored file={} reason=\"{}\"", file_.string(),
                 damaged.message());
  }
}

std::optional<RestartNote> RestartNote::ofEnvironment(const cluster::JobSpec& job) {
  const char* const folders = std::getenv("RUNTIME_DIRECTORY");
  if (folders == nullptr || *folders == '\0') return std::nullopt;
  return RestartNote(split(folders, ':').front(), job);
}

// "CHECKSUM {...}\n"
void RestartNote::read() {
  const std::string text = readFile(file_, kBytesMax);
  if (text.size() <= kChecksumBytes + 1 || text[kChecksumBytes] != ' ' || text.back() != '\n')
    throw Error(ErrorCode::kBadData, "it is cut off");
  const std::string json = text.substr(kChecksumBytes + 1, text.size() - kChecksumBytes - 2);
  if (fromHex(text.substr(0, kChecksumBytes)) != checksumOf(json))
    throw Error(ErrorCode::kBadData, "its checksum is another one");
  const Json note = Json::parse(json);
  if (note.stringAt("job") != job_ || note.stringAt("run_dir") != run_dir_) return;
  const int64_t step = note.intAt("step");
  if (step < 0) throw Error(ErrorCode::kBadData, "its step is below 0");
  reached_ = static_cast<uint64_t>(step);
  result_ = note.at("result");
}

void RestartNote::reach(uint64_t step) {
  write(step, nullptr);
}

void RestartNote::end(uint64_t step, const Json& result) {
  write(step, result);
}

void RestartNote::forget() {
  std::error_code ignored;
  std::filesystem::remove(file_, ignored);
}

void RestartNote::write(uint64_t step, const Json& result) {
  if (is_lost_) return;
  const std::string json =
      Json{{"job", job_}, {"run_dir", run_dir_}, {"step", step}, {"result", result}}.dumpAscii();
  try {
    atomicReplace(file_, hexOf(checksumOf(json)) + " " + json + "\n");
  } catch (const Error& error) {
    is_lost_ = true;
    log::warning(
        "event=restart_note_lost reason=\"{}\" advice=\"a chief that systemd starts again won't "
        "know how far the job was\"",
        error.message());
  }
}

}  // namespace dtf::daemons
