#include "common/model/inference_graph.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/graph/builder.h"

namespace dtf::model {

InferenceGraph buildInferenceGraph(const ModelSpec& model, int64_t batch_size) {
  ModelGraph evaluation = buildEvaluationGraph(model, batch_size);
  const graph::Output output = evaluation.logits;
  InferenceGraph result{std::move(evaluation), output};
  graph::Builder ops(result.model.graph);
  const graph::Builder::Scope scope = ops.nameScope("inference");
  if (model.loss.kind == Loss::kSoftmaxCrossEntropy) result.outputs = ops.softmax(output);
  if (model.loss.kind == Loss::kSigmoidCrossEntropy) result.outputs = ops.sigmoid(output);
  DTF_CHECK(result.model.graph.spec(result.outputs) == result.model.graph.spec(output));
  return result;
}

std::string_view outputName(const ModelSpec& model) {
  const Loss loss = model.loss.kind;
  return loss == Loss::kSoftmaxCrossEntropy || loss == Loss::kSigmoidCrossEntropy ? "probabilities"
                                                                                  : "outputs";
}

int64_t classOf(const ModelSpec& model, std::span<const float> outputs) {
  DTF_CHECK(!outputs.empty());
  if (outputs.size() > 1) return std::max_element(outputs.begin(), outputs.end()) - outputs.begin();
  const float middle = model.loss.kind == Loss::kHinge ? 0.0F : 0.5F;
  return outputs[0] > middle ? 1 : 0;
}

}  // namespace dtf::model
