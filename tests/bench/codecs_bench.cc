// `dtf-bench codecs`: how fast the codecs of gradients and parameters work on one thread, beside
// memcpy of as many float32 (common/arena/codec.h).

#include <fmt/core.h>

#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "common/arena/codec.h"
#include "common/base/clock.h"
#include "common/base/random.h"
#include "tests/bench/benchmarks.h"
#include "tests/support/sizes.h"

namespace dtf::bench {

namespace {

using CodecWork = std::function<void()>;

// Returns GB/s of `bytes` of float32.
double speedOf(const CodecWork& work, uint64_t bytes, int rounds) {
  const SystemClock clock;
  const TimePoint start = clock.now();
  for (int i = 0; i < rounds; ++i) work();
  return 1e-9 * static_cast<double>(bytes) * rounds / toSeconds(clock.now() - start);
}

// Measures all in turns.
void addSpeeds(Report& report, const std::string& name, const std::vector<CodecWork>& works,
               uint64_t bytes, const BenchOptions& options) {
  const int rounds = static_cast<int>((options.quick ? 4 : 256) * kMiB / bytes) + 1;
  std::vector<std::vector<double>> speeds(works.size());
  for (const CodecWork& work : works) work();
  for (int turn = 0; turn < options.repetitions; ++turn)
    for (size_t i = 0; i < works.size(); ++i) speeds[i].push_back(speedOf(works[i], bytes, rounds));
  std::vector<double> medians;
  for (const std::vector<double>& each : speeds) medians.push_back(median(each));
  report.add(name, medians);
}

void addCodec(Report& report, const arena::CodecSpec& spec, const std::string& name,
              uint64_t elements, const BenchOptions& options) {
  const auto codec = arena::makeCodec(spec, elements, {});
  Random random(1);
  std::vector<float> gradient(elements), residual(elements), base(elements), came(elements);
  for (float& value : gradient) value = static_cast<float>(random.uniform() - 0.5);
  std::vector<std::byte> bytes(codec->bytes());
  const auto* const changes = dynamic_cast<const arena::ChangeCodec*>(codec.get());
  std::vector<CodecWork> works = {
      [&] { std::memcpy(came.data(), gradient.data(), elements * sizeof(float)); },
      [&] {
        codec->encode({gradient.data(), {}, residual.data()}, {0, elements}, bytes.data());
      },
      [&] { codec->decode(bytes, {}, came.data()); }};
  if (changes != nullptr) {
    works.emplace_back(
        [&] { changes->encodeChange(gradient.data(), base.data(), bytes.data(), came.data()); });
    works.emplace_back([&] { changes->applyChange(bytes, base.data(), base.data()); });
  }
  addSpeeds(report, name, works, elements * sizeof(float), options);
}

}  // namespace

std::vector<Report> benchCodecs(const BenchOptions& options) {
  std::vector<Report> reports;
  for (const uint64_t mib : {1, 64}) {
    if (options.quick && !reports.empty()) break;
    const uint64_t elements = mib * kMiB / sizeof(float);
    const std::string of = fmt::format(" of {} MiB of float32, GB/s of one thread (medians)", mib);
    Report rounding("a gradient" + of, {"memcpy", "encode", "decode"});
    addCodec(rounding, arena::CodecKind::kBFloat16, "bfloat16", elements, options);
    Report lossy("a gradient with its residual, and a change of parameters," + of,
                 {"memcpy", "encode", "decode", "encode change", "apply change"});
    addCodec(lossy, arena::CodecKind::kInt8, "int8", elements, options);
    addCodec(lossy, {arena::CodecKind::kTopK, 0.01}, "top_k 0.01", elements, options);
    reports.push_back(rounding);
    reports.push_back(lossy);
  }
  return reports;
}

}  // namespace dtf::bench
