#pragma once

// A whole job by dtf-launch, in a folder of its own.

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

namespace dtf::bench {

// The summary of the job whose cluster file is `cluster_text(folder)`, with its run directory at
// `folder`/runs. Blocks until it has ended.
// Errors: kInternal with all that dtf-launch said when the job isn't done.
nlohmann::json runJob(const std::function<std::string(const std::string& folder)>& cluster_text);

}  // namespace dtf::bench
