#pragma once

// What dtf-launch says at the start of a job and at each evaluation: one line each, however many
// tasks there are.

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "common/cluster/spec.h"
#include "launcher/notice.h"

namespace dtf::launcher {

// "digits-softmax: 2 ps, 2 workers; logs in runs/digits-softmax/logs"
std::string startText(const cluster::JobSpec& job, const std::filesystem::path& logs);

// "serving clients on dtf://localhost:2224, dtf://localhost:2225, and 14 others"
std::string servingText(const std::vector<std::string>& targets);

// "model: 2 variables, 7850 parameters (30.6 KiB); gradient_descent, async, 2000 steps"
std::string modelText(const ModelNotice& model, const cluster::JobSpec& job);

// "placement: ps/0 30.6 KiB, ps/1 40 B", or of many ps the least and the most.
std::string placementText(const ModelNotice& model);

// "evaluation at step 500: accuracy 0.9213, loss 0.287"
std::string evaluationText(const EvaluationNotice& evaluation);

}  // namespace dtf::launcher
