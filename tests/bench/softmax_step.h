#pragma once

// The table `softmax-step` of dtf-bench: see softmax_step.cc.

namespace dtf::bench {

// Prints the table on stdout, one JSON object a line when `json`. Returns an exit code.
int benchSoftmaxStep(bool json);

}  // namespace dtf::bench
