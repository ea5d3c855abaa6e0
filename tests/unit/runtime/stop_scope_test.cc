#include "common/runtime/stop_scope.h"

#include <gtest/gtest.h>

#include "common/base/error.h"
#include "common/runtime/cpu_device.h"

namespace dtf::runtime {
namespace {

// Counts its runs, and sets `stop` in the third one.
class StoppingKernel final : public Kernel {
 public:
  void run(const KernelArguments&) override {
    if (++runs == 3) stop = true;
  }
  int runs = 0;
  std::atomic<bool> stop = false;
};

TEST(StopScope, EndsStepsBetweenTwoKernels) {
  StoppingKernel kernel;
  const std::vector<Launch> launches(10, Launch{.kernel = &kernel, .arguments = {}});
  CpuDevice device;
  const StopScope scope(kernel.stop);
  EXPECT_THROW(device.run(launches), Error);
  EXPECT_EQ(kernel.runs, 3);
  EXPECT_THROW(device.run(launches), Error);
  EXPECT_THROW(device.run({}), Error) << "a loop over nothing";
  EXPECT_EQ(kernel.runs, 3);
}

TEST(StopScope, TheInnermostCounts) {
  const std::atomic<bool> yes = true, no = false;
  EXPECT_EQ(StopScope::current(), nullptr);
  {
    const StopScope outer(yes);
    {
      const StopScope inner(no);
      EXPECT_NO_THROW(throwIfStopped(StopScope::current()));
    }
    EXPECT_THROW(throwIfStopped(StopScope::current()), Error);
  }
  EXPECT_NO_THROW(throwIfStopped(StopScope::current()));
}

}  // namespace
}  // namespace dtf::runtime
