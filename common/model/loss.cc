#include "common/model/loss.h"

#include "common/base/check.h"
#include "common/base/text.h"

namespace dtf::model {

std::string nameOf(Loss loss) {
  const std::vector<std::string> names = split(kLossNames, '|');
  const auto index = static_cast<size_t>(loss);
  DTF_CHECK(index < names.size());
  return names[index];
}

graph::Output lossTerms(graph::Builder& ops, Loss loss, graph::Output output,
                        graph::Output labels) {
  if (loss == Loss::kSoftmaxCrossEntropy) return ops.sparseSoftmaxCrossEntropy(output, labels).loss;
  const graph::Output targets = ops.oneHot(labels, ops.graph().spec(output).shape.dim(1));
  return loss == Loss::kMse ? ops.squaredDifference(output, targets)
                            : ops.sigmoidCrossEntropy(output, targets);
}

}  // namespace dtf::model
