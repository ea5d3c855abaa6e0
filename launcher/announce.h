#pragma once

// The lines that dtf-launch prints at the start of a job, at each evaluation and at a stop signal:
// one each, however many tasks there are, and one for each record that is left out.

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "common/cluster/spec.h"
#include "launcher/notice.h"

namespace dtf::launcher {

// "digits-softmax: 2 ps, 2 workers; logs in runs/digits-softmax/logs; metrics of worker/0 at
// http://localhost:9402"
std::string startText(const cluster::JobSpec& job, const std::filesystem::path& logs);

// "all 4 tasks are ready (0.2 s)"
std::string readyText(size_t tasks, double seconds);

// "serving clients on dtf://localhost:2224, dtf://localhost:2225, and 14 others"
std::string servingText(const std::vector<std::string>& targets);

// "model: 2 variables, 7850 parameters (30.6 KiB); gradient_descent, async, 2000 steps"
std::string modelText(const ModelNotice& model, const cluster::JobSpec& job);

// "placement: ps/0 30.6 KiB, ps/1 40 B", or of many ps the least and the most.
std::string placementText(const ModelNotice& model, const cluster::JobSpec& job);

// "left out: 12 records that can't be read", and a line for each reason.
std::string leftOutText(const LeftOutNotice& left_out);

// Behind the name of the signal: ": saving a checkpoint and stopping; once more: at once, unsaved".
// `saves`: the job is asked to save; else its tasks are ended.
std::string stoppingText(const cluster::JobSpec& job, bool saves);

// "evaluation at step 500: accuracy 0.9213, loss 0.287"
std::string evaluationText(const EvaluationNotice& evaluation);

}  // namespace dtf::launcher
