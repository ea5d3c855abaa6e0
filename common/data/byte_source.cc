#include "common/data/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/file.h"
#include "common/yaml/sent_files.h"

namespace dtf::data {

namespace {

constexpr size_t kChunkBytes = 256 * 1024;
// No deflate stream unpacks to more: 258 bytes from 2 bits (https://zlib.net/zlib_tech.html).
constexpr uint64_t kDeflateRatioMax = 1032;
constexpr size_t kZlibBytesMax = size_t{1} << 30;  // zlib counts in 32 bits

std::atomic<uint64_t> bytes_read{0};  // by this process

}  // namespace

uint64_t bytesRead() {
  return bytes_read.load(std::memory_order_relaxed);
}

struct ByteSource::Impl {
  explicit Impl(const std::filesystem::path& path);
  ~Impl() {
    if (packed) inflateEnd(&stream);
  }
  [[noreturn]] void fail(const std::string& why) const {
    throw Error(ErrorCode::kBadData, path.string() + ": " + why);
  }
  [[noreturn]] void failToOpen(int error) const;
  size_t readFile(uint8_t* to, size_t bytes);
  size_t readPlain(uint8_t* to, size_t bytes);
  size_t readPacked(uint8_t* to, size_t bytes);
  bool refill();
  bool nextMember();

  const std::filesystem::path path;
  Fd fd;
  uint64_t file_bytes = 0;
  bool packed = false;
  z_stream stream{};  // its input window also buffers the first plain bytes
  bool ended = false;
  std::unique_ptr<uint8_t[]> chunk = std::make_unique_for_overwrite<uint8_t[]>(kChunkBytes);
};

// O_NONBLOCK: opening a named pipe would block, only to reject it.
ByteSource::Impl::Impl(const std::filesystem::path& p)
    : path(p), fd(::open(yaml::placeOfData(p).c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {
  if (!fd.valid()) failToOpen(errno);
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) fail("cannot read it: " + errnoText(errno));
  if (!S_ISREG(info.st_mode)) fail("not a regular file");
  file_bytes = static_cast<uint64_t>(info.st_size);
  refill();
  const bool gzip = stream.avail_in >= 2 && chunk[0] == 0x1f && chunk[1] == 0x8b;
  if (!gzip) return;
  constexpr int kGzipOnly =
      15 + 16;  // the largest window, and a gzip header (zlib.h, inflateInit2)
  if (inflateInit2(&stream, kGzipOnly) != Z_OK) throw std::bad_alloc();
  packed = true;
}

void ByteSource::Impl::failToOpen(int error) const {
  // MNIST's own names: most people see this message before they have fetched it.
  const std::string name = path.filename().string();
  const bool mnist = name.ends_with("-ubyte.gz") || name.ends_with("-ubyte");
  throw Error(error == EACCES ? ErrorCode::kPermission : ErrorCode::kBadData,
              path.string() + ": cannot open it: " + errnoText(error) +
                  (error == ENOENT && mnist ? "; scripts/fetch-mnist.sh fetches MNIST" : ""));
}

size_t ByteSource::Impl::readFile(uint8_t* to, size_t bytes) {
  size_t done = 0;
  while (done < bytes) {
    const ssize_t n = ::read(fd.get(), to + done, bytes - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("cannot read it: " + errnoText(errno));
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  return done;
}

// Returns false at the end of the file.
bool ByteSource::Impl::refill() {
  stream.next_in = chunk.get();
  stream.avail_in = static_cast<uInt>(readFile(chunk.get(), kChunkBytes));
  return stream.avail_in > 0;
}

size_t ByteSource::Impl::readPlain(uint8_t* to, size_t bytes) {
  const size_t held = std::min<size_t>(bytes, stream.avail_in);
  std::memcpy(to, stream.next_in, held);
  stream.next_in += held;
  stream.avail_in -= static_cast<uInt>(held);
  return held + readFile(to + held, bytes - held);
}

// Skips padding after a gzip member; returns whether another member follows.
bool ByteSource::Impl::nextMember() {
  for (;;) {
    if (stream.avail_in == 0 && !refill()) return false;
    if (*stream.next_in != 0) break;
    ++stream.next_in;
    --stream.avail_in;
  }
  if (*stream.next_in != 0x1f)
    fail("trailing bytes after the gzip data, neither gzip nor padding; fetch it again");
  inflateReset(&stream);
  return true;
}

size_t ByteSource::Impl::readPacked(uint8_t* to, size_t bytes) {
  DTF_CHECK(packed);
  bytes = std::min(bytes, kZlibBytesMax);
  stream.next_out = to;
  stream.avail_out = static_cast<uInt>(bytes);
  while (stream.avail_out > 0 && !ended) {
    if (stream.avail_in == 0 && !refill())
      fail("damaged gzip data: the file ends in the middle of the stream; fetch it again");
    const int status = inflate(&stream, Z_NO_FLUSH);
    if (status == Z_STREAM_END) {
      ended = !nextMember();
    } else if (status != Z_OK) {
      const char* why = stream.msg != nullptr ? stream.msg : zError(status);
      fail(std::string("damaged gzip data: ") + why + "; fetch it again");
    }
  }
  return bytes - stream.avail_out;
}

ByteSource::ByteSource(const std::filesystem::path& path) : impl_(std::make_unique<Impl>(path)) {}
ByteSource::~ByteSource() = default;

size_t ByteSource::read(uint8_t* to, size_t bytes) {
  DTF_CHECK(to != nullptr || bytes == 0);
  size_t done = impl_->packed ? 0 : impl_->readPlain(to, bytes);
  while (impl_->packed && done < bytes) {
    const size_t n = impl_->readPacked(to + done, bytes - done);
    if (n == 0) break;
    done += n;
  }
  bytes_read.fetch_add(done, std::memory_order_relaxed);
  return done;
}

bool ByteSource::packed() const {
  return impl_->packed;
}

uint64_t ByteSource::bytesMax() const {
  return impl_->packed ? impl_->file_bytes * kDeflateRatioMax : impl_->file_bytes;
}

}  // namespace dtf::data
