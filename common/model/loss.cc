#include "common/model/loss.h"

#include <fmt/format.h>

#include <array>

#include "common/base/check.h"
#include "common/yaml/keys.h"
#include "common/yaml/map_reader.h"

namespace dtf::model {

namespace {

constexpr yaml::Key kSmoothingKeys[] = {
    yaml::number("label_smoothing", yaml::kDecay, "this much of each label goes to all classes"),
};
constexpr yaml::Key kHuberKeys[] = {
    yaml::number("delta", {1e-6, 1e6, false, false}, "where the square becomes a line; default 1"),
};
constinit const yaml::Table kSmoothingTable{
    "train.model.loss.softmax_cross_entropy, .sigmoid_cross_entropy", kSmoothingKeys};
constinit const yaml::Table kHuberTable{"train.model.loss.huber", kHuberKeys};
constinit const yaml::Table kPlainTable{"train.model.loss.mse, .mae, .hinge", {}};

// In the order of the enum.
constexpr yaml::Key kLossKeys[] = {
    yaml::map("softmax_cross_entropy", "one class for each example"),
    yaml::map("mse", "the mean square of output - target (of classes: one hot)"),
    yaml::map("sigmoid_cross_entropy", "each class or target by itself; one unit: two classes"),
    yaml::map("mae", "the mean size of output - target (of classes: one hot)"),
    yaml::map("huber", "mse for small differences, mae for large ones"),
    yaml::map("hinge", "a linear support vector machine for each class; one unit: two classes"),
};
constexpr const yaml::Table* kSettings[] = {&kSmoothingTable, &kPlainTable, &kSmoothingTable,
                                            &kPlainTable,     &kHuberTable, &kPlainTable};
static_assert(std::size(kSettings) == std::size(kLossKeys));
constinit const yaml::Table kLossTable{"train.model.loss", kLossKeys};

// What `output` is to be.
graph::Output targetsOf(graph::Builder& ops, const Shape& output, graph::Output labels) {
  if (ops.graph().spec(labels).dtype == DType::kFloat32) return labels;
  if (output.dim(1) != 1) return ops.oneHot(labels, output.dim(1));
  return ops.slice(ops.oneHot(labels, 2), Shape{0, 1}, output);  // the column of class 1
}

graph::Output smoothed(graph::Builder& ops, graph::Output targets, double smoothing, double floor) {
  if (smoothing == 0) return targets;
  const Shape shape = ops.graph().spec(targets).shape;
  return ops.add(ops.scale(targets, 1 - smoothing), ops.constant(shape, smoothing * floor));
}

}  // namespace

std::string_view nameOf(Loss loss) {
  DTF_CHECK(static_cast<size_t>(loss) < std::size(kLossKeys));
  return kLossKeys[static_cast<size_t>(loss)].name;
}

std::string LossSpec::text() const {
  std::string text(nameOf(kind));
  if (label_smoothing != 0) text += fmt::format(" label_smoothing={}", label_smoothing);
  if (kind == Loss::kHuber) text += fmt::format(" delta={}", delta);
  return text;
}

LossSpec readLoss(const yaml::YamlNode& node, yaml::Report& report) {
  LossSpec loss;
  const std::optional<yaml::Alternative> chosen =
      yaml::readAlternative(node, kLossTable, "loss", report);
  if (!chosen) return loss;
  const auto index = static_cast<size_t>(chosen->key - kLossKeys);
  loss.kind = static_cast<Loss>(index);
  const yaml::Table& table = *kSettings[index];
  const yaml::MapReader settings(chosen->settings, table, chosen->key->name, report);
  if (&table == &kSmoothingTable) settings.number("label_smoothing", loss.label_smoothing);
  if (&table == &kHuberTable) settings.number("delta", loss.delta);
  return loss;
}

std::vector<const yaml::Table*> lossTables() {
  return {&kLossTable, &kSmoothingTable, &kHuberTable};
}

graph::Output lossTerms(graph::Builder& ops, const LossSpec& loss, graph::Output output,
                        graph::Output labels) {
  if (loss.kind == Loss::kSoftmaxCrossEntropy && loss.label_smoothing == 0)
    return ops.sparseSoftmaxCrossEntropy(output, labels).loss;
  const Shape shape = ops.graph().spec(output).shape;
  const graph::Output targets = targetsOf(ops, shape, labels);
  switch (loss.kind) {
    case Loss::kSoftmaxCrossEntropy: {
      const double share = 1.0 / static_cast<double>(shape.dim(1));
      return ops.softmaxCrossEntropy(output, smoothed(ops, targets, loss.label_smoothing, share))
          .loss;
    }
    case Loss::kSigmoidCrossEntropy:
      return ops.sigmoidCrossEntropy(output, smoothed(ops, targets, loss.label_smoothing, 0.5));
    case Loss::kMse:
      return ops.squaredDifference(output, targets);
    case Loss::kMae:
      return ops.abs(ops.sub(output, targets));
    case Loss::kHuber:
      return ops.huber(ops.sub(output, targets), loss.delta);
    case Loss::kHinge: {
      const graph::Output signs = ops.add(ops.scale(targets, 2), ops.constant(shape, -1));
      return ops.relu(ops.sub(ops.constant(shape, 1), ops.mul(signs, output)));
    }
  }
  DTF_CHECK_MSG(false, std::to_string(static_cast<int>(loss.kind)));
}

}  // namespace dtf::model
