#include "launcher/slurm/allocation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/text.h"
#include "common/cluster/address.h"
#include "common/yaml/error_at.h"
#include "launcher/run_program.h"

namespace dtf::launcher {

namespace {

constexpr Duration kScontrolWithin = std::chrono::seconds(10);

constexpr std::string_view kToCome = ".invalid";  // names no host, by RFC 2606

// The node of this name, in whatever letters; null: there is none.
const std::string* nodeOf(const std::vector<std::string>& nodes, const std::string& host) {
  const auto found = std::find_if(nodes.begin(), nodes.end(), [&host](const std::string& node) {
    return cluster::hostKey(node) == cluster::hostKey(host);
  });
  return found == nodes.end() ? nullptr : &*found;
}

}  // namespace

std::vector<std::string> allocatedNodes() {
  const char* list = std::getenv("SLURM_JOB_NODELIST");
  if (list == nullptr)
    throw Error(ErrorCode::kUsage,
                "'launch: {via: slurm}' starts tasks on the nodes of a Slurm allocation, and there "
                "is none (SLURM_JOB_NODELIST is not set): submit the job with dtf-launch submit "
                "FILE, or start it within salloc");
  const ProgramAnswer answer =
      runProgram({"scontrol", "show", "hostnames", list}, "", kScontrolWithin);
  std::vector<std::string> nodes;
  for (const std::string& line : split(answer.out, '\n'))
    if (!line.empty()) nodes.push_back(line);
  if (!answer.status.success() || nodes.empty())
    throw Error(ErrorCode::kUnavailable, "scontrol does not list the nodes of '" +
                                             std::string(list) + "': " + printable(answer.err));
  return nodes;
}

std::vector<std::string> nodesToCome(const cluster::SlurmSpec& slurm) {
  std::vector<std::string> nodes;
  for (uint32_t node = 0; node < std::max(slurm.nodes, 1U); ++node)
    nodes.push_back(fmt::format("slurm-node-{}{}", node, kToCome));
  return nodes;
}

bool isNodeToCome(std::string_view host) {
  return host.ends_with(kToCome);
}

void placeOnNodes(cluster::JobSpec& job, const std::vector<std::string>& nodes) {
  DTF_CHECK(!nodes.empty());
  for (std::vector<cluster::TaskSpec>* tasks : {&job.cluster.ps, &job.cluster.worker})
    for (size_t i = 0; i < tasks->size(); ++i) {
      std::string& host = (*tasks)[i].address.host;
      if ((*tasks)[i].by_count)
        host = nodes[i % nodes.size()];
      else if (const std::string* node = nodeOf(nodes, host))
        host = *node;  // srun knows it in these letters only
    }
}

void checkNodes(const cluster::JobSpec& job, const std::vector<std::string>& nodes) {
  if (nodes.size() < job.launch.slurm.nodes)
    throw yaml::ErrorAt(
        ErrorCode::kBadConfig, job.mark,
        fmt::format("the job needs {} nodes (launch.nodes), and the allocation has {}: {}",
                    job.launch.slurm.nodes, nodes.size(), join(nodes, ", ")));
  for (const std::vector<cluster::TaskSpec>* tasks : {&job.cluster.ps, &job.cluster.worker})
    for (const cluster::TaskSpec& task : *tasks)
      if (nodeOf(nodes, task.address.host) == nullptr)
        throw yaml::ErrorAt(
            ErrorCode::kBadConfig, task.mark,
            "'" + task.address.host + "' is not a node of the allocation: " + join(nodes, ", "));
}

}  // namespace dtf::launcher
