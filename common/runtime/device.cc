#include "common/runtime/device.h"

namespace dtf::runtime {
namespace {

class PlainProgram final : public Program {
 public:
  PlainProgram(Device& device, std::span<const Launch> launches)
      : device_(device), launches_(launches) {}
  void run() override { device_.run(launches_); }

 private:
  Device& device_;
  const std::span<const Launch> launches_;
};

}  // namespace

std::unique_ptr<Program> Device::prepare(std::span<const Launch> launches) {
  return std::make_unique<PlainProgram>(*this, launches);
}

}  // namespace dtf::runtime
