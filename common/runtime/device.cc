#include "common/runtime/device.h"

#include <string>

#include "common/base/check.h"
#include "common/base/clock.h"

namespace dtf::runtime {
namespace {

class PlainProgram final : public Program {
 public:
  PlainProgram(Device& device, std::span<const Launch> launches)
      : device_(device), launches_(launches) {}
  void run() override { device_.run(launches_); }
  std::vector<double> profile() override {
    const SystemClock clock;
    std::vector<double> seconds;
    for (size_t i = 0; i < launches_.size(); ++i) {
      const TimePoint begin = clock.now();
      device_.run(launches_.subspan(i, 1));
      device_.synchronise();
      seconds.push_back(toSeconds(clock.now() - begin));
    }
    return seconds;
  }

 private:
  Device& device_;
  const std::span<const Launch> launches_;
};

}  // namespace

void Device::copyFromPeer(std::byte*, Device& peer, const std::byte*, size_t) {
  DTF_CHECK_MSG(false, std::string(name()) + " can't copy from " + std::string(peer.name()));
}

std::unique_ptr<Program> Device::prepare(std::span<const Launch> launches) {
  return std::make_unique<PlainProgram>(*this, launches);
}

}  // namespace dtf::runtime
