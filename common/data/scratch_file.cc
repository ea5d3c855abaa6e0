#include "common/data/scratch_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/text.h"

namespace dtf::data {

namespace {

// Not /tmp, which may be in memory.
std::filesystem::path scratchFolder() {
  const char* const given = std::getenv("TMPDIR");
  return given != nullptr && *given != '\0' ? given : "/var/tmp";
}

[[noreturn]] void failScratch(const std::filesystem::path& folder, size_t bytes, int errno_value) {
  throw Error(
      ErrorCode::kCannotWrite,
      fmt::format("cannot keep {}examples in a file in {}: {} ({}): set TMPDIR to a folder on a "
                  "disk with that much room",
                  bytes == 0 ? "" : bytesText(bytes) + " of ", folder.string(),
                  std::strerror(errno_value), errno_value));
}

Fd openScratch(const std::filesystem::path& folder, size_t bytes) {
  std::string name = (folder / "dtf-examples-XXXXXX").string();
  Fd file(::mkostemp(name.data(), O_CLOEXEC));
  if (!file.valid()) failScratch(folder, bytes, errno);
  ::unlink(name.c_str());
  return file;
}

}  // namespace

ScratchFile::ScratchFile(size_t bytes)
    : folder_(scratchFolder()), file_(openScratch(folder_, bytes)) {
  DTF_CHECK(bytes > 0);
  if (const int wrong = ::posix_fallocate(file_.get(), 0, static_cast<off_t>(bytes)); wrong != 0)
    failScratch(folder_, bytes, wrong);
}

ScratchFile::ScratchFile() : folder_(scratchFolder()), file_(openScratch(folder_, 0)) {}

void ScratchFile::append(std::string_view bytes) {
  appended_ += bytes.size();
  if (writeAll(file_.get(), bytes) > 0) failScratch(folder_, appended_, errno);
}

}  // namespace dtf::data
