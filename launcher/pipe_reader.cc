#include "launcher/pipe_reader.h"

#include <unistd.h>

#include <array>
#include <cerrno>

#include "common/base/check.h"

namespace dtf::launcher {

namespace {
constexpr size_t kChunkBytes = 65536;
constexpr int kDrainChunksMax = 64;  // 4 MiB: four times the largest pipe an ordinary user can make
}  // namespace

PipeReader::PipeReader(boost::asio::io_context& io, Fd pipe, OnBytes on_bytes)
    : on_bytes_(std::move(on_bytes)), watch_(io, std::move(pipe), [this] { readOnce(); }) {
  DTF_CHECK(on_bytes_);
}

void PipeReader::drain() {
  for (int i = 0; i < kDrainChunksMax && watch_.fd() >= 0 && readOnce(); ++i) {
  }
  watch_.close();
}

bool PipeReader::readOnce() {
  static thread_local std::array<char, kChunkBytes> buffer;
  DTF_CHECK(watch_.fd() >= 0);
  const ssize_t n = ::read(watch_.fd(), buffer.data(), buffer.size());
  if (n > 0) {
    on_bytes_(std::string_view(buffer.data(), static_cast<size_t>(n)));
    return true;
  }
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  watch_.close();
  return false;
}

}  // namespace dtf::launcher
