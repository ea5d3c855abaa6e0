#include "common/model/loss.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "common/base/check.h"
#include "common/model/former_names.h"
#include "common/model/numbers.h"
#include "common/yaml/keys.h"
#include "common/yaml/map_reader.h"

namespace dtf::model {

namespace {

constexpr size_t kClassesMax = 50'000;  // a file has no more than 100 000 values
constexpr yaml::NumberRange kWeightRange{0, 1e6, false, false};
constexpr yaml::Key kSmoothing =
    yaml::number("label_smoothing", yaml::kDecay, "this much of each label goes to all classes");
constexpr yaml::Key kPositiveWeight =
    yaml::number("positive_weight", kWeightRange, "weight of a target of 1; default 1");
constexpr yaml::Key kClassWeight = yaml::number("class_weights", kWeightRange, "");
constexpr yaml::Key kClassWeights =
    yaml::list("class_weights", "weight of each class, from class 0; default 1");
constexpr yaml::Key kSoftmaxKeys[] = {kSmoothing, kClassWeights};
constexpr yaml::Key kSigmoidKeys[] = {kSmoothing, kPositiveWeight};
constexpr yaml::Key kHingeKeys[] = {kPositiveWeight};
constexpr yaml::Key kPlainKeys[] = {kClassWeights};
constexpr yaml::Key kTensorKeys[] = {
    yaml::required(yaml::text("name", "a float32 scalar of a `graph`, the mean of its batch")),
    yaml::whole("targets", 1, kClassesMax,
                "targets of each example, if the data have targets; default 1"),
};
constexpr yaml::Key kHuberKeys[] = {
    kClassWeights,
    yaml::number("delta", {1e-6, 1e6, false, false}, "where the square becomes a line; default 1"),
};
constinit const yaml::Table kSoftmaxTable{"train.model.loss.sparse_categorical_crossentropy",
                                          kSoftmaxKeys};
constinit const yaml::Table kSigmoidTable{"train.model.loss.binary_crossentropy", kSigmoidKeys};
constinit const yaml::Table kHingeTable{"train.model.loss.hinge", kHingeKeys};
constinit const yaml::Table kTensorTable{"train.model.loss.tensor", kTensorKeys};
constinit const yaml::Table kHuberTable{"train.model.loss.huber", kHuberKeys};
constinit const yaml::Table kPlainTable{"train.model.loss.mean_squared_error, .mean_absolute_error",
                                        kPlainKeys};

// In the order of the enum.
constexpr yaml::Key kLossKeys[] = {
    yaml::map("sparse_categorical_crossentropy",
              "one class for each example; takes logits, Keras's from_logits=True"),
    yaml::map("mean_squared_error", "the mean of (output - target)^2 (of classes: one hot)"),
    yaml::map("binary_crossentropy",
              "each class or target by itself; one unit: two classes; takes logits"),
    yaml::map("mean_absolute_error", "the mean of |output - target| (of classes: one hot)"),
    yaml::map("huber", "the square of small differences, the size of large ones"),
    yaml::map("hinge", "a linear support vector machine for each class; one unit: two classes"),
    yaml::map("tensor", "a scalar that the ops of a `graph` compute; they can read `labels`"),
};
constexpr const yaml::Table* kSettings[] = {&kSoftmaxTable, &kPlainTable, &kSigmoidTable,
                                            &kPlainTable,   &kHuberTable, &kHingeTable,
                                            &kTensorTable};
static_assert(std::size(kSettings) == std::size(kLossKeys));
constinit const yaml::Table kLossTable{"train.model.loss", kLossKeys};

// Returns the targets of `output`.
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
  if (!class_weights.empty()) text += " class_weights=" + numbersText(class_weights);
  if (positive_weight != 1) text += fmt::format(" positive_weight={}", positive_weight);
  if (kind == Loss::kHuber) text += fmt::format(" delta={}", delta);
  if (kind == Loss::kTensor) text += " name=" + tensor;
  return text;
}

namespace {

std::vector<double> readClassWeights(const yaml::MapReader& settings) {
  std::vector<double> weights = readNumbers(settings, kClassWeight, kClassesMax);
  const bool nothing = std::ranges::all_of(weights, [](double weight) { return weight == 0; });
  if (nothing && !weights.empty())
    settings.report().error(settings.find(kClassWeight.name)->where(),
                            "'class_weights' are all 0: nothing would be learnt");
  return weights;
}

}  // namespace

LossSpec readLoss(const yaml::YamlNode& node, yaml::Report& report) {
  LossSpec loss;
  yaml::YamlNode named = node;
  useTodaysLoss(named, report);
  const std::optional<yaml::Alternative> chosen =
      yaml::readAlternative(named, kLossTable, "loss", report);
  if (!chosen) return loss;
  const auto index = static_cast<size_t>(chosen->key - kLossKeys);
  loss.kind = static_cast<Loss>(index);
  const yaml::Table& table = *kSettings[index];
  const yaml::MapReader settings(chosen->settings, table, chosen->key->name, report);
  const bool softmax = &table == &kSoftmaxTable, sigmoid = &table == &kSigmoidTable;
  if (softmax || sigmoid) settings.number("label_smoothing", loss.label_smoothing);
  if (table.find(kClassWeight.name) != nullptr) loss.class_weights = readClassWeights(settings);
  if (sigmoid || &table == &kHingeTable) settings.number("positive_weight", loss.positive_weight);
  if (&table == &kHuberTable) settings.number("delta", loss.delta);
  if (&table == &kTensorTable) {
    settings.text("name", loss.tensor);
    settings.whole("targets", loss.targets);
  }
  return loss;
}

std::vector<const yaml::Table*> lossTables() {
  return {&kLossTable,  &kSoftmaxTable, &kPlainTable, &kSigmoidTable,
          &kHuberTable, &kHingeTable,   &kTensorTable};
}

namespace {

// Returns the terms without weights.
graph::Output plainTerms(graph::Builder& ops, const LossSpec& loss, graph::Output output,
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
    case Loss::kTensor:
      break;  // the model's own ops have it
  }
  DTF_CHECK_MSG(false, std::to_string(static_cast<int>(loss.kind)));
}

// Returns the weight of each term's class, in the shape `terms`.
graph::Output classWeightsOf(graph::Builder& ops, const std::vector<double>& weights,
                             graph::Output labels, const Shape& terms) {
  const auto classes = static_cast<int64_t>(weights.size());
  const graph::Output table = ops.reshape(vectorOf(ops, weights, classes), Shape{classes, 1});
  DTF_CHECK(terms.rank() == 1 || terms.rank() == 2);
  const graph::Output column = ops.matMul(ops.oneHot(labels, classes), table);
  if (terms.rank() == 1) return ops.reshape(column, terms);
  return ops.matMul(column, ops.constant(Shape{1, terms.dim(1)}, 1));
}

}  // namespace

graph::Output lossTerms(graph::Builder& ops, const LossSpec& loss, graph::Output output,
                        graph::Output labels) {
  const graph::Output terms = plainTerms(ops, loss, output, labels);
  if (!loss.class_weights.empty())
    return ops.mul(terms, classWeightsOf(ops, loss.class_weights, labels,
                                         Shape(ops.graph().spec(terms).shape)));
  if (loss.positive_weight == 1) return terms;
  const Shape shape = ops.graph().spec(output).shape;
  const graph::Output more = ops.scale(targetsOf(ops, shape, labels), loss.positive_weight - 1);
  return ops.mul(terms, ops.add(more, ops.constant(shape, 1)));
}

}  // namespace dtf::model
