#pragma once

// The choices of `kernels: timed`: each convolution goes the way that was the fastest where the run
// began. The ways round differently, so the choices belong to the run. The chief times each new
// convolution, unless this machine has timed it before (kernel_cache.h), and adds its choice to
// run_dir/kernels.json. The other workers read the choices there, and so does any process that
// resumes, evaluates or repeats the run.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/clock.h"
#include "common/cluster/spec.h"
#include "common/runtime/convolution_ways.h"
#include "common/train/kernel_cache.h"

namespace dtf::train {

inline constexpr std::string_view kKernelsFile = "kernels.json";  // in the run's folder

// How other workers wait for the chief's choice.
// Borrows: `clock`.
struct KernelWait {
  Duration patience{};  // limit for all waits together
  std::function<void(const std::string& what, Duration waited)> on_waiting;  // may be empty
  const Clock* clock = nullptr;
  std::function<void(Duration)> sleep;
};

// Owns: the choices read from the file so far.
// Borrows: the clock of the wait.
// Threads: thread-compatible.
// Blocks: while it times, or waits for the chief.
// Errors: kBadData if the file has no valid choices; kBadConfig if a chosen way can't be used here;
// kDeadline, naming file and chief, if the chief doesn't choose in time; kCannotWrite.
class KernelChoices {
 public:
  // How to choose for a convolution that the file doesn't have.
  enum class Absent : uint8_t {
    // Time it, unless the cache has it, and add it to the file: for the chief.
    kTime,
    // Wait until the chief has added it: for other workers.
    kAwait,
    // Use runtime::fastestWay(), with a warning: for programs that use a trained model.
    kTable,
  };
  // `rule`: kTable uses no file, and only `winograd` matters then. `wait`: for kAwait. `cache`: for
  // kTime. `winograd`: see runtime::winogradAllowed().
  KernelChoices(cluster::KernelRule rule, const std::filesystem::path& run_dir, Absent absent,
                KernelWait wait = {}, KernelCache cache = {},
                bool winograd = runtime::winogradAllowed());

  // Returns "the table", or "timing, kept in runs/job/kernels.json".
  std::string text() const;

  // Returns the rule for runtime::registerCpuKernels(); it refers to this.
  runtime::ConvolutionRule rule();

 private:
  const runtime::ConvolutionWay& choose(runtime::ConvolutionPass pass,
                                        const runtime::Convolution& c,
                                        const runtime::Processor& cpu);
  const runtime::ConvolutionWay* find(const std::string& way, runtime::ConvolutionPass pass,
                                      const runtime::Convolution& c) const;
  const runtime::ConvolutionWay& chosen(const std::string& way, runtime::ConvolutionPass pass,
                                        const runtime::Convolution& c) const;
  const runtime::ConvolutionWay& timeOrRecall(const std::string& key, runtime::ConvolutionPass pass,
                                              const runtime::Convolution& c,
                                              const runtime::Processor& cpu);
  void read();
  void add(const std::string& key, const runtime::ConvolutionWay& way,
           const runtime::Processor& cpu);
  const std::string& await(const std::string& key);

  const cluster::KernelRule rule_;
  const std::filesystem::path file_;
  const Absent absent_;
  const bool winograd_;
  const KernelWait wait_;
  KernelCache cache_;
  std::map<std::string, std::string> ways_;  // by runtime::convolutionKey()
  std::optional<TimePoint> waiting_since_;   // since the first wait
};

}  // namespace dtf::train
