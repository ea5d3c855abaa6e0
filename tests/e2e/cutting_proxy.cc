#include "tests/e2e/cutting_proxy.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

namespace dtf::testing {

namespace {

constexpr size_t kKindAt = 8;
constexpr char kBulk = 2;

// Cap'n Proto's framing: segments - 1, the words of each, padding to 8 bytes; then the segments.
// Nullopt-like 0: `header` is not whole yet.
size_t tableBytes(const std::string& header) {
  uint32_t segments = 0;
  if (header.size() < sizeof segments) return 0;
  std::memcpy(&segments, header.data(), sizeof segments);
  const size_t bytes = (4 * (size_t{segments} + 2) + 7) / 8 * 8;
  return header.size() < bytes ? 0 : bytes;
}

size_t bodyBytes(const std::string& header) {
  uint32_t last = 0;
  std::memcpy(&last, header.data(), sizeof last);
  size_t words = 0;
  for (size_t i = 0; i <= last; ++i) {
    uint32_t segment = 0;
    std::memcpy(&segment, header.data() + 4 * (i + 1), sizeof segment);
    words += segment;
  }
  return 8 * words;
}

}  // namespace

class CuttingProxy::Connection : public ProxiedConnection {
 public:
  explicit Connection(CuttingProxy& proxy) : proxy_(proxy) {}

  size_t pass(Toward direction, char* bytes, size_t size) override {
    return direction == Toward::kPs ? allowed(bytes, size) : size;
  }

 private:
  // How many of the worker's next bytes the ps may have. Sets cut_ when they are the last.
  size_t allowed(const char* bytes, size_t size) {
    size_t at = std::min(size, kPreambleBytes - preamble_.size());
    preamble_.append(bytes, at);
    if (preamble_.size() < kPreambleBytes || preamble_[kKindAt] != kBulk) return size;
    while (at < size) {
      const size_t of_body = std::min(size - at, body_left_);
      at += of_body;
      body_left_ -= of_body;
      if (ends_ && body_left_ == 0) {
        proxy_.cut_ = true;
        return at;
      }
      if (at == size) break;
      header_ += bytes[at++];
      if (tableBytes(header_) == 0) continue;
      body_left_ = bodyBytes(header_);
      header_.clear();
      if (body_left_ < proxy_.push_bytes_min_ || ++proxy_.pushes_ <= proxy_.whole_) continue;
      body_left_ /= 2;
      ends_ = true;
    }
    return size;
  }

  CuttingProxy& proxy_;
  std::string preamble_;  // the worker's, as far as it has come
  std::string header_;    // of the message that comes next
  size_t body_left_ = 0;
  bool ends_ = false;  // with this body
};

CuttingProxy::CuttingProxy(int ps_port, size_t whole, size_t push_bytes_min,
                           std::function<void()> on_cut)
    : whole_(whole),
      push_bytes_min_(push_bytes_min),
      proxy_({ps_port}, {.connect = [this] { return std::make_shared<Connection>(*this); },
                         .is_over = [this] { return cut_.load(); },
                         .on_over = std::move(on_cut)}) {}

}  // namespace dtf::testing
