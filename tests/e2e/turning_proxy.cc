#include "tests/e2e/turning_proxy.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace dtf::testing {

namespace {

constexpr size_t kGapBytesMin = 64;

}  // namespace

class TurningProxy::Connection : public ProxiedConnection,
                                 public std::enable_shared_from_this<Connection> {
 public:
  explicit Connection(TurningProxy& proxy) : proxy_(proxy) {}

  size_t pass(Toward direction, char* bytes, size_t size) override {
    size_t preamble = 0;
    if (direction == Toward::kPs) {
      preamble = std::min(size, preamble_left_);
      preamble_left_ -= preamble;
    }
    turn(direction, bytes + preamble, size - preamble);
    return size;
  }

 private:
  void turn(Toward direction, char* bytes, size_t size) {
    TurningProxy& of = proxy_;
    const bool is_due = of.turned() < of.turns_ && of.turned_connection_.expired();
    if (!is_due || direction != of.next_direction_) return;
    if (of.gap_ >= size) {
      of.gap_ -= size;
      return;
    }
    const int bit = std::uniform_int_distribution(0, 7)(of.random_);
    bytes[of.gap_] = static_cast<char>(bytes[of.gap_] ^ 1 << bit);
    ++of.turned_[static_cast<size_t>(direction)];
    of.turned_connection_ = weak_from_this();
    of.gap_ = of.nextGap();
    of.next_direction_ = direction == Toward::kPs ? Toward::kWorker : Toward::kPs;
  }

  TurningProxy& proxy_;
  size_t preamble_left_ = kPreambleBytes;
};

TurningProxy::TurningProxy(std::vector<int> ps_ports, size_t turns, size_t gap_bytes_max,
                           unsigned seed)
    : turns_(turns),
      gap_bytes_max_(gap_bytes_max),
      random_(seed),
      gap_(nextGap()),
      proxy_(std::move(ps_ports),
             {.connect = [this] { return std::make_shared<Connection>(*this); }}) {}

size_t TurningProxy::nextGap() {
  const double most = std::log(static_cast<double>(gap_bytes_max_) / kGapBytesMin);
  return static_cast<size_t>(kGapBytesMin *
                             std::exp(std::uniform_real_distribution(0.0, most)(random_)));
}

}  // namespace dtf::testing
