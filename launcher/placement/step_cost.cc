#include "launcher/placement/step_cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "common/base/check.h"
#include "common/base/error.h"

namespace dtf::launcher {

namespace {

// The speed at which a host reads gradients and writes parameters, when all its cores do.
constexpr double kUpdateBytesPerSecond = 4e9;
// An update reads the parameters and a slot, and writes them.
constexpr double kUpdateArenas = 3;

// What hosts send and receive at the same time.
class Phase {
 public:
  explicit Phase(size_t hosts) : out_(hosts), in_(hosts) {}

  void send(size_t from, size_t to, double bytes) {
    if (from == to) return;
    out_[from] += bytes;
    in_[to] += bytes;
  }

  double secondsOf(size_t host, const HostLink& link) const {
    return std::max(out_[host] / link.out, in_[host] / link.in);
  }
  double out(size_t host) const { return out_[host]; }
  double in(size_t host) const { return in_[host]; }

 private:
  std::vector<double> out_, in_;  // bytes, by host
};

std::vector<Phase> phasesOf(const StepBytes& step, size_t hosts) {
  Phase push(hosts), back_up(hosts), answer(hosts);
  for (size_t i = 0; i < step.shards.size(); ++i) {
    const ShardBytes& shard = step.shards[i];
    for (const size_t worker : step.workers) {
      push.send(worker, shard.host, shard.pushed);
      answer.send(shard.host, worker, shard.answered);
    }
    back_up.send(shard.host, step.shards[(i + 1) % step.shards.size()].host, shard.backed_up);
  }
  return {push, back_up, answer};
}

double updateSeconds(const StepBytes& step, size_t hosts) {
  std::vector<double> bytes(hosts);
  const auto workers = static_cast<double>(step.workers.size());
  for (const ShardBytes& shard : step.shards)
    bytes[shard.host] += (workers + kUpdateArenas) * shard.pushed;
  return *std::ranges::max_element(bytes) / kUpdateBytesPerSecond;
}

}  // namespace

std::vector<HostLink> linksOf(const std::vector<std::string>& hosts,
                              const std::vector<NetworkRow>& rows) {
  std::vector<HostLink> links;
  for (const std::string& host : hosts) {
    HostLink link{host};
    std::string problem = "nothing was measured";
    for (const NetworkRow& row : rows) {
      if (!row.is_files || (row.from != host && row.to != host)) continue;
      if (!row.reached()) {
        problem = row.measured.problem;
        continue;
      }
      const Measured& seen = row.measured;
      if (row.from == host) link.out = std::max(link.out, seen.bytes_per_second);
      if (row.to == host) link.in = std::max(link.in, seen.bytes_per_second);
      const double trip = seen.round_trip_us * 1e-6;
      link.round_trip = link.round_trip == 0 ? trip : std::min(link.round_trip, trip);
    }
    if (link.out <= 0 || link.in <= 0)
      throw Error(ErrorCode::kUnavailable,
                  fmt::format("the link of {} can't be measured: {}", host, problem));
    links.push_back(std::move(link));
  }
  return links;
}

ExchangeCost costOf(const StepBytes& step, const std::vector<HostLink>& links) {
  DTF_CHECK(!links.empty() && !step.shards.empty() && !step.workers.empty());
  const std::vector<Phase> phases = phasesOf(step, links.size());
  ExchangeCost cost{updateSeconds(step, links.size())};
  std::vector<double> busy(links.size());
  double round_trip = 0;
  for (const Phase& phase : phases) {
    double longest = 0;
    for (size_t host = 0; host < links.size(); ++host) {
      const double seconds = phase.secondsOf(host, links[host]);
      busy[host] += seconds;
      longest = std::max(longest, seconds);
      if (seconds > 0) round_trip = std::max(round_trip, links[host].round_trip);
    }
    cost.seconds += longest;
  }
  cost.seconds += round_trip;
  const auto busiest = static_cast<size_t>(std::ranges::max_element(busy) - busy.begin());
  if (busy[busiest] == 0) return cost;
  cost.busiest = links[busiest].host;
  for (const Phase& phase : phases) {
    cost.busiest_sends += phase.out(busiest);
    cost.busiest_receives += phase.in(busiest);
  }
  return cost;
}

namespace {

// The shares of one host's shards together that let a phase end within a given time. Value type.
struct ShareRange {
  double least = 0, most = 1;
};

// `seconds`: of a push or an answer, for one byte of the model. `own`, `others`: workers on this
// host and elsewhere. In the push the host sends (1 - share) of each own gradient, and receives its
// share of each other one; in the answer it is the other way round.
ShareRange shareWithin(double seconds, double own, double others, const HostLink& link) {
  ShareRange range;
  const double slowest = std::min(link.out, link.in), bytes = seconds * slowest;
  if (own > 0) range.least = std::max(0.0, 1 - bytes / own);
  if (others > 0) range.most = std::min(1.0, bytes / others);
  return range;
}

}  // namespace

std::vector<double> sharesByLink(const std::vector<size_t>& workers,
                                 const std::vector<size_t>& shards,
                                 const std::vector<HostLink>& links) {
  DTF_CHECK(!workers.empty() && !shards.empty());
  if (links.size() == 1)
    return std::vector<double>(shards.size(), 1 / static_cast<double>(shards.size()));
  std::vector<double> own(links.size()), hosted(links.size());
  for (const size_t worker : workers) ++own.at(worker);
  for (const size_t shard : shards) ++hosted.at(shard);
  const auto all = static_cast<double>(workers.size());
  // Returns what each host may have; empty: the time is too short.
  const auto rangesWithin = [&](double seconds) {
    std::vector<ShareRange> ranges;
    double least = 0, most = 0;
    for (size_t host = 0; host < links.size(); ++host) {
      ShareRange range = shareWithin(seconds, own[host], all - own[host], links[host]);
      if (hosted[host] == 0) range.most = 0;
      if (range.least > range.most) return std::vector<ShareRange>();
      least += range.least;
      most += range.most;
      ranges.push_back(range);
    }
    return least <= 1 && most >= 1 ? ranges : std::vector<ShareRange>();
  };
  double too_short = 0, enough = 0;
  for (const HostLink& link : links) enough = std::max(enough, all / std::min(link.out, link.in));
  constexpr int kHalvings = 60;  // to the last digits of a double
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (too_short + enough) / 2;
    (rangesWithin(middle).empty() ? too_short : enough) = middle;
  }
  const std::vector<ShareRange> ranges = rangesWithin(enough);
  DTF_CHECK(!ranges.empty());
  double least = 0, most = 0;
  for (const ShareRange& range : ranges) {
    least += range.least;
    most += range.most;
  }
  const double rest = most > least ? std::clamp((1 - least) / (most - least), 0.0, 1.0) : 0;
  std::vector<double> shares;
  for (const size_t host : shards) {
    const ShareRange& range = ranges[host];
    shares.push_back((range.least + rest * (range.most - range.least)) / hosted[host]);
  }
  return shares;
}

}  // namespace dtf::launcher
