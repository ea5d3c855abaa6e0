#pragma once

// The browser page of a job: one self-contained page that requests /status.json from each task once
// a second and draws the replies.

#include <string>
#include <string_view>
#include <vector>

#include "common/cluster/options.h"
#include "daemons/progress_history.h"
#include "daemons/service_watch.h"

namespace dtf::daemons {

// Returns HTML, the same for every task.
std::string_view statusPage();
// Returns the page's content security policy: its own style and script, and requests to the other
// tasks.
std::string_view statusPagePolicy();

// Returns /status.json: the task and its state, the addresses of the other tasks, its metrics as
// [name, labels, value], and its history as four columns. Non-finite numbers are null.
std::string statusJson(const cluster::TaskOptions& options, const ServiceLook& look,
                       const std::vector<Metric>& metrics, const ProgressHistory& history);

// Returns the hosts with pages that may read this task's status: the hosts of all tasks of
// `options.job`, as spelled in the file; loopback in every spelling.
std::vector<std::string> hostsOfTasks(const cluster::TaskOptions& options);

}  // namespace dtf::daemons
