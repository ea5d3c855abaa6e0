#pragma once

// What `placement: auto` chooses from, and why: a function of the job's file and of the links
// between its hosts.

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/base/json.h"
#include "common/cluster/spec.h"
#include "launcher/placement/step_cost.h"

namespace dtf::launcher {

// One placement of the job's parameters. Value type.
struct PlacementOption {
  std::string name;     // "ps", "hybrid", "workers": as in placement.among
  std::string why_not;  // the reason why the job can't have it; empty: it can, and the rest is set
  ExchangeCost cost;
  std::vector<double> shares;          // in the order of hosts; empty: all get the same
  std::vector<std::string> overrides;  // `--set` that give the job this placement
};

struct PlacementChoice {
  std::vector<HostLink> links;
  std::vector<PlacementOption> options;
  size_t chosen = 0;  // the least cost; of nearly equal ones the first

  const PlacementOption& option() const { return options.at(chosen); }
};

// An option or shares of its hosts must be better by this factor than what the file has as it is:
// measurements of half a second differ.
inline constexpr double kPlacementBetterBy = 1.05;

// A job that was read again. Value type.
struct ReadJob {
  std::optional<cluster::JobSpec> job;
  std::string why_not{};  // without a job: its mistakes, in one line
};
// Reads the job's file with further overrides, and checks the job, as before it starts.
using JobReader = std::function<ReadJob(const std::vector<std::string>& overrides)>;

// `job`: with `placement: auto`. `links`: of all its hosts. An option whose overrides the file
// refuses is not possible.
// Errors: kBadConfig at the key if no option is possible; those of train::placeModel() and `read`.
PlacementChoice choosePlacement(const cluster::JobSpec& job, const std::vector<HostLink>& links,
                                const JobReader& read);

// Returns the hosts of all tasks, each once, in the order of `allTasks()`.
std::vector<std::string> linkedHosts(const cluster::JobSpec& job);

// Returns "workers, 20.1 ms a step predicted: 10.0.0.3 sends 3.9 MB and receives 3.9 MB".
std::string choiceText(const PlacementChoice& choice);
// Returns the links, and a line for each option.
std::string choiceTable(const PlacementChoice& choice);
Json choiceJson(const PlacementChoice& choice);

}  // namespace dtf::launcher
