#pragma once

// A job as a person sees it in a browser: one page without anything from elsewhere, which asks each
// task for /status.json once a second and draws what they say.

#include <string>
#include <string_view>
#include <vector>

#include "common/cluster/options.h"
#include "daemons/progress_history.h"
#include "daemons/service_watch.h"

namespace dtf::daemons {

// HTML, the same for every task.
std::string_view statusPage();
// What a browser may do for that page: its own style and script, and ask the other tasks.
std::string_view statusPagePolicy();

// Of /status.json: what the task is and does, where the others answer, its metrics as [name,
// labels, value], and its history as four columns. Numbers that aren't finite are null.
std::string statusJson(const cluster::TaskOptions& options, const ServiceLook& look,
                       const std::vector<Metric>& metrics, const ProgressHistory& history);

// Whose pages may read what a task says: the hosts of all tasks of `options.job`, as the file
// spells them; of loopback in each spelling.
std::vector<std::string> hostsOfTasks(const cluster::TaskOptions& options);

}  // namespace dtf::daemons
