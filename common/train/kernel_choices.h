#pragma once

// `kernels: timed`: each convolution goes the way that was the fastest where the run began. The
// ways round differently, so the choice belongs to the run: the chief times what it meets for the
// first time (unless this machine has timed it before: kernel_cache.h) and keeps it in
// run_dir/kernels.json, and all others take it from there, as does whoever goes on with the run,
// evaluates it or repeats it.

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

// How others wait until the chief has chosen.
// Borrows: `clock`.
struct KernelWait {
  Duration patience{};  // of all waits together
  std::function<void(const std::string& what, Duration waited)> on_waiting;  // may be empty
  const Clock* clock = nullptr;
  std::function<void(Duration)> sleep;
};

// Owns: what the file says, as far as it was read.
// Borrows: what the wait borrows.
// Threads: thread-compatible.
// Blocks: while it times, or waits for the chief.
// Errors: kBadData for a file that is none of ours; kBadConfig for a way that can't be gone here;
// kDeadline, naming file and chief, when nobody chooses; kCannotWrite.
class KernelChoices {
 public:
  // What is done with a convolution that the file doesn't have.
  enum class Absent : uint8_t {
    kTime,   // and added to it, unless the cache knows it: by the chief
    kAwait,  // until the chief has: by other workers
    kTable,  // runtime::fastestWay(), with a warning: by who uses what was trained
  };
  // `rule`: with kTable nothing of the following matters, and the file is left alone. `wait`: of
  // kAwait.
  // `cache`: of kTime. `winograd`: see runtime::winogradAllowed().
  KernelChoices(cluster::KernelRule rule, const std::filesystem::path& run_dir, Absent absent,
                KernelWait wait = {}, KernelCache cache = {},
                bool winograd = runtime::winogradAllowed());

  // "the table"; "timing, kept in runs/job/kernels.json".
  std::string text() const;

  // For runtime::registerCpuKernels(); refers to this.
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
  std::optional<TimePoint> waiting_since_;   // the first time
};

}  // namespace dtf::train
