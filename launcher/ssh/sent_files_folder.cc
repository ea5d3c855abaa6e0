#include "launcher/ssh/sent_files_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/file.h"

namespace dtf::launcher {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kPrefix = ".sent-files-";

void write(const fs::path& file, std::string_view text) {
  std::error_code error;
  fs::create_directories(file.parent_path(), error);
  if (error) failWrite(file, error.value());
  const Fd fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd.valid() || writeAll(fd.get(), text) > 0) failWrite(file, errno);
}

}  // namespace

SentFilesFolder::SentFilesFolder(const fs::path& run_dir, const SentFiles& files) {
  DTF_CHECK_MSG(run_dir.is_absolute(), run_dir.string());
  makeWritableFolder(run_dir);
  folder_.emplace(run_dir, kPrefix);
  for (const auto& [path, text] : files) write(this->path() / path.relative_path(), text);
}

void SentFilesFolder::replace(const fs::path& file, std::string_view text) {
  const fs::path place = path() / file.relative_path();
  if (file.lexically_normal() != file || !fs::is_regular_file(fs::symlink_status(place)))
    throw Error(ErrorCode::kBadData, "no file was sent as '" + file.string() + "'");
  const fs::path unfinished = place.string() + ".new";
  ::unlink(unfinished.c_str());  // where there was no room for it before
  write(unfinished, text);
  if (::rename(unfinished.c_str(), place.c_str()) != 0) failWrite(place, errno);
}

}  // namespace dtf::launcher
