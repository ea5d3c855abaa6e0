#include "launcher/placement/auto_placement.h"

#include <fmt/format.h>
#include <unistd.h>

#include <limits>

#include "common/base/check.h"
#include "common/base/print.h"
#include "common/yaml/error_at.h"
#include "launcher/listen_sockets.h"
#include "launcher/network/measured_hosts.h"
#include "launcher/output.h"

namespace dtf::launcher {

namespace {

// Of hosts that dtf-launch does not reach by an agent, only this one is measured.
void checkReach(const cluster::JobSpec& job, const std::vector<std::string>& hosts) {
  if (job.launch.byAgents()) return;
  for (const std::string& host : hosts)
    if (!isThisHost(host))
      throw yaml::ErrorAt(
          ErrorCode::kBadConfig, job.train->placement.strategy_mark,
          fmt::format(
              "'placement: auto' measures the links by dtf-agent over ssh, or by Slurm, and "
              "the tasks on {} are started otherwise: write the placement here that "
              "'dtf-launch explain --measure --set launch.via=ssh' prints",
              host));
}

PlacementChoice measureAndChoose(const cluster::JobSpec& job, const Options& options,
                                 const Origin& origin, const JobReader& read) {
  DTF_CHECK(job.train.has_value());
  const std::vector<std::string> hosts = linkedHosts(job);
  DTF_CHECK(!hosts.empty());
  // Nothing leaves the only host.
  constexpr double kNoLink = std::numeric_limits<double>::infinity();
  if (hosts.size() == 1) return choosePlacement(job, {{hosts[0], kNoLink, kNoLink, 0}}, read);
  checkReach(job, hosts);
  return choosePlacement(
      job, linksOf(hosts, measureHosts(job, options, origin, NetworkScope::kLinks, true)), read);
}

}  // namespace

bool choosesPlacement(const cluster::JobSpec& job) {
  return job.train && job.train->placement.strategy == cluster::PlacementSpec::Strategy::kAuto &&
         !job.cluster.isOneProcess();
}

std::optional<KeptPlacement> keptPlacement(const cluster::JobSpec& job) {
  std::optional<KeptPlacement> kept = readPlacement(job.run_dir);
  if (kept && kept->of != placementKey(job)) return std::nullopt;
  return kept;
}

KeptPlacement measurePlacement(const cluster::JobSpec& job, const Options& options,
                               const Origin& origin, const JobReader& read) {
  const PlacementChoice choice = measureAndChoose(job, options, origin, read);
  if (options.json) printEvent("placement", choiceJson(choice));
  return {placementKey(job), choiceText(choice), choice.option().cost.seconds,
          choice.option().overrides};
}

int explainPlacement(const cluster::JobSpec& job, const Options& options, const Origin& origin,
                     const JobReader& read) {
  const PlacementChoice choice = measureAndChoose(job, options, origin, read);
  if (options.json)
    printEvent("placement", choiceJson(choice));
  else
    print(choiceTable(choice));
  return 0;
}

}  // namespace dtf::launcher
