#include "common/train/kernel_choices.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/file.h"
#include "common/base/ids.h"
#include "common/base/json.h"
#include "common/base/log.h"
#include "common/base/processor_name.h"
#include "common/runtime/timed_convolutions.h"

namespace dtf::train {

namespace {

using runtime::Convolution;
using runtime::ConvolutionPass;
using runtime::ConvolutionWay;
using runtime::Processor;

constexpr uint64_t kFileBytesMax = uint64_t{4} << 20;
constexpr int kSchema = 1;
constexpr std::chrono::milliseconds kLookEvery{50};
constexpr std::chrono::seconds kSayEvery{3};

std::map<std::string, std::string> parseWays(const std::filesystem::path& file) {
  const std::string text = readFile(file, kFileBytesMax);
  try {
    const Json parsed = Json::parse(text);
    if (parsed.at("schema") == kSchema) {
      std::map<std::string, std::string> ways;
      for (const auto& [key, way] : parsed.at("convolutions").members()) ways[key] = way.asString();
      return ways;
    }
  } catch (const Error&) {  // thrown below
  }
  throw Error(ErrorCode::kBadData,
              fmt::format("{} doesn't say which way convolutions go: remove it to have them timed "
                          "again, which may change the last bits of the run",
                          file.string()));
}

// Returns all that affects which way is the fastest, or which ways exist.
std::string machineText(const Processor& cpu, bool winograd) {
  return fmt::format("{}, {}, {} threads, dtf " DTF_VERSION "{}", processorName(), isaName(cpu.isa),
                     cpu.threads(), winograd ? "" : ", no winograd");
}

}  // namespace

KernelChoices::KernelChoices(cluster::KernelRule rule, const std::filesystem::path& run_dir,
                             Absent absent, KernelWait wait, KernelCache cache, bool winograd)
    : rule_(rule),
      file_(run_dir / kKernelsFile),
      absent_(absent),
      winograd_(winograd),
      wait_(std::move(wait)),
      cache_(std::move(cache)) {
  if (rule_ == cluster::KernelRule::kTimed) read();
}

void KernelChoices::read() {
  std::error_code gone;
  if (std::filesystem::exists(file_, gone)) ways_ = parseWays(file_);
}

std::string KernelChoices::text() const {
  if (rule_ == cluster::KernelRule::kTable) return "the table";
  return fmt::format("timing, {} {}",
                     ways_.empty() ? "when the run begins: to be kept in" : "kept in",
                     file_.string());
}

runtime::ConvolutionRule KernelChoices::rule() {
  if (rule_ == cluster::KernelRule::kTable) return runtime::tableRule(winograd_);
  return [this](ConvolutionPass pass, const Convolution& c,
                const Processor& cpu) -> const ConvolutionWay& { return choose(pass, c, cpu); };
}

const ConvolutionWay& KernelChoices::choose(ConvolutionPass pass, const Convolution& c,
                                            const Processor& cpu) {
  const std::string key = runtime::convolutionKey(pass, c);
  if (const auto known = ways_.find(key); known != ways_.end())
    return chosen(known->second, pass, c);
  switch (absent_) {
    case Absent::kTime:
      return timeOrRecall(key, pass, c, cpu);
    case Absent::kAwait:
      return chosen(await(key), pass, c);
    case Absent::kTable:
      break;
  }
  const ConvolutionWay& way = runtime::fastestWay(pass, c, winograd_);
  log::warning(
      "event=kernel_not_chosen convolution=\"{}\" file={} taken={} reason=\"the last bits "
      "may differ from the run's\"",
      key, file_.string(), way.name);
  return way;
}

const ConvolutionWay& KernelChoices::timeOrRecall(const std::string& key, ConvolutionPass pass,
                                                  const Convolution& c, const Processor& cpu) {
  const std::string machine = machineText(cpu, winograd_);
  const std::optional<std::string> recalled = cache_.find(machine, key);
  const ConvolutionWay* way = recalled ? find(*recalled, pass, c) : nullptr;
  const bool timed = way == nullptr;
  if (timed) {
    way = &runtime::fastestByTiming(pass, c, cpu, winograd_);
    cache_.keep(machine, key, std::string(way->name));
  }
  add(key, *way, cpu);
  log::info("event=kernel_chosen convolution=\"{}\" way={} timed={}", key, way->name,
            timed ? "now" : "before");
  return *way;
}

const ConvolutionWay* KernelChoices::find(const std::string& way, ConvolutionPass pass,
                                          const Convolution& c) const {
  for (const ConvolutionWay& each : runtime::convolutionWays())
    if (each.name == way && each.fits(pass, c) && (winograd_ || !each.rounds_otherwise))
      return &each;
  return nullptr;
}

const ConvolutionWay& KernelChoices::chosen(const std::string& way, ConvolutionPass pass,
                                            const Convolution& c) const {
  if (const ConvolutionWay* const known = find(way, pass, c)) return *known;
  throw Error(
      ErrorCode::kBadConfig,
      fmt::format("{} says that a convolution goes by '{}', which {}: remove the file to "
                  "have the kernels timed again, which may change the last bits of the run",
                  file_.string(), way,
                  way == "winograd" && !winograd_ ? "DTF_WINOGRAD=0 forbids" : "doesn't fit it"));
}

// Replaces the file, so that readers see each choice whole.
void KernelChoices::add(const std::string& key, const ConvolutionWay& way, const Processor& cpu) {
  ways_[key] = way.name;
  makeWritableFolder(file_.parent_path());
  const Json json = {{"schema", kSchema},
                     {"instruction_set", isaName(cpu.isa)},
                     {"threads", cpu.threads()},
                     {"convolutions", ways_}};
  atomicReplace(file_, json.dump(1) + "\n");
}

const std::string& KernelChoices::await(const std::string& key) {
  DTF_CHECK(wait_.clock != nullptr && wait_.sleep);
  if (!waiting_since_) waiting_since_ = wait_.clock->now();
  TimePoint said = wait_.clock->now();
  for (;;) {
    read();
    if (const auto known = ways_.find(key); known != ways_.end()) return known->second;
    const TimePoint now = wait_.clock->now();
    const Duration waited = now - *waiting_since_;
    if (waited >= wait_.patience)
      throw Error(ErrorCode::kDeadline,
                  fmt::format("{} has chosen no kernel for '{}' in {} within {:.0f} s: with "
                              "'kernels: timed' all tasks must see the same run_dir",
                              kChief.name(), key, file_.string(), toSeconds(wait_.patience)));
    if (now - said >= kSayEvery && wait_.on_waiting) {
      said = now;
      wait_.on_waiting(fmt::format("{} to choose kernels in {}", kChief.name(), file_.string()),
                       waited);
    }
    wait_.sleep(std::min<Duration>(kLookEvery, wait_.patience - waited));
  }
}

}  // namespace dtf::train
