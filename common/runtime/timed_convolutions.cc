#include "common/runtime/timed_convolutions.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <vector>

#include "common/base/check.h"
#include "common/base/random.h"
#include "common/tensor/buffer.h"

namespace dtf::runtime {
namespace {

constexpr int kRounds = 7;
// The time of the fastest way's call: long enough to dwarf the cost of calling.
constexpr double kTimedSeconds = 0.01;
// A way that takes this many times the fastest one's time on a few images is dropped.
constexpr double kHopeless = 4;

Convolution someImages(Convolution c, double count) {
  c.batch = std::clamp<int64_t>(static_cast<int64_t>(count), 1, c.batch);
  return c;
}

Buffer randomFloats(int64_t count) {
  Buffer buffer(static_cast<size_t>(count) * sizeof(float));
  Random random(static_cast<uint64_t>(count));
  for (int64_t i = 0; i < count; ++i) buffer.as<float>()[i] = random.uniform(-1, 1);
  return buffer;
}

// Owns: the tensors of one pass.
class Trial {
 public:
  Trial(ConvolutionPass pass, const Convolution& c, const Processor& cpu)
      : pass_(pass),
        c_(c),
        cpu_(cpu),
        first_(randomFloats(pass == ConvolutionPass::kBackpropInput ? c.filterElements()
                                                                    : c.imageElements())),
        second_(
            randomFloats(pass == ConvolutionPass::kForward ? c.filterElements() : c.outElements())),
        result_(randomFloats(std::max({c.imageElements(), c.filterElements(), c.outElements()}))) {}

  double seconds(const ConvolutionWay& way) {
    Buffer workspace(way.workspaceBytes(cpu_, c_));
    const auto begin = std::chrono::steady_clock::now();
    way.run(pass_)(cpu_, c_, first_.as<float>(), second_.as<float>(), result_.as<float>(),
                   reinterpret_cast<std::byte*>(workspace.data()));
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

 private:
  const ConvolutionPass pass_;
  const Convolution c_;
  const Processor cpu_;
  const Buffer first_, second_;
  Buffer result_;
};

double medianOf(std::vector<double> seconds) {
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  return *middle;
}

std::string axesText(int64_t height, int64_t width) {
  return std::to_string(height) + "x" + std::to_string(width);
}

}  // namespace

std::string convolutionKey(ConvolutionPass pass, const Convolution& c) {
  const graph::WindowAxis &height = c.window.height, &width = c.window.width;
  std::string padding;
  for (const int64_t side : {height.before, height.after, width.before, width.after})
    padding += (padding.empty() ? "p" : ",") + std::to_string(side);
  return std::string(passName(pass)) + " " + axesText(c.height, c.width) + "x" +
         std::to_string(c.channels) + " " + axesText(height.size, width.size) + " s" +
         axesText(height.stride, width.stride) + " " + padding + " d" +
         axesText(height.dilation, width.dilation) + " g" + std::to_string(c.groups) + " -> " +
         std::to_string(c.out_channels);
}

const ConvolutionWay& fastestOf(std::span<const TimedWay> timed, const ConvolutionWay& expected) {
  const TimedWay* best = nullptr;
  for (const TimedWay& each : timed)
    if (each.way == &expected) best = &each;
  DTF_CHECK_MSG(best != nullptr, std::string(expected.name));
  const double to_beat = best->seconds * (1 - kFasterBy);
  for (const TimedWay& each : timed)
    if (each.seconds < std::min(to_beat, best->seconds)) best = &each;
  return *best->way;
}

const ConvolutionWay& fastestByTiming(ConvolutionPass pass, const Convolution& c,
                                      const Processor& cpu, bool winograd) {
  const ConvolutionWay& expected = fastestWay(pass, c, winograd);
  std::vector<TimedWay> timed;
  for (const ConvolutionWay& way : convolutionWays())
    if (way.fits(pass, c) && (winograd || !way.rounds_otherwise)) timed.push_back({&way, 0});
  if (timed.size() == 1 || c.empty()) return expected;
  // Tries each on one image per thread; then times the candidates for the fastest, in turns.
  const Convolution few = someImages(c, cpu.threads());
  Trial look(pass, few, cpu);
  double best = std::numeric_limits<double>::max();
  for (TimedWay& each : timed) {
    look.seconds(*each.way);  // warms caches and pages
    each.seconds = look.seconds(*each.way);
    best = std::min(best, each.seconds);
  }
  const double count = static_cast<double>(few.batch) * kTimedSeconds / std::max(best, 1e-7);
  const Convolution some = someImages(c, std::min(count, 1e6));
  Trial trial(pass, some, cpu);
  std::vector<std::vector<double>> seconds(timed.size());
  for (int round = 0; round <= kRounds; ++round)
    for (size_t i = 0; i < timed.size(); ++i) {
      if (timed[i].seconds > kHopeless * best) continue;
      const double spent = trial.seconds(*timed[i].way);
      if (round > 0) seconds[i].push_back(spent);
    }
  const double larger = static_cast<double>(some.batch) / static_cast<double>(few.batch);
  for (size_t i = 0; i < timed.size(); ++i)
    timed[i].seconds = seconds[i].empty() ? timed[i].seconds * larger : medianOf(seconds[i]);
  return fastestOf(timed, expected);
}

}  // namespace dtf::runtime
