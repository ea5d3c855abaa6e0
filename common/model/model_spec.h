#pragma once

// A model as its file describes it, after validation: the result of read_model.h.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/tensor/dtype.h"
#include "common/yaml/mark.h"

namespace dtf::model {

class Layer;

// Value type; copies share the layer, which is immutable.
struct LayerSpec {
  std::string type;  // its word in the file: "dense"
  std::string name;  // unique in the model; "dense_1" and so on where the file gives none
  std::string from;  // the layer that it reads; empty: the one before it
  std::shared_ptr<const Layer> layer;  // its settings; never null
  yaml::Mark mark;
};

enum class Loss : uint8_t {
  kSoftmaxCrossEntropy,
  kMse,
  kSigmoidCrossEntropy,
  kMae,
  kHuber,
  kHinge,
  kTensor  // a scalar that the model's own ops compute
};

struct LossSpec {
  Loss kind = Loss::kSoftmaxCrossEntropy;
  double label_smoothing = 0;  // the cross-entropies, in [0, 1)
  double delta = 1;            // kHuber: where the square becomes a line
  // The weight of each class, from class 0; empty: 1. Other losses than kSigmoidCrossEntropy and
  // kHinge.
  std::vector<double> class_weights;
  double positive_weight = 1;  // kSigmoidCrossEntropy, kHinge: the weight of a target of 1
  std::string tensor{};        // kTensor: its name
  int64_t targets = 1;         // kTensor: of each example, where the data have targets
  std::string text() const;    // "mean_squared_error", "huber delta=2"
  bool operator==(const LossSpec&) const = default;
};

// Metrics of evaluations beside the accuracy: see train/metric.h.
enum class MetricKind : uint8_t { kTopK, kAuc, kPrecision, kRecall, kMae, kMse, kRmse, kR2 };

// A metric as the file names it: `auc`, `sparse_top_5_categorical_accuracy`. Value type.
struct MetricSpec {
  // Not explicit: most kinds have no settings.
  MetricSpec(MetricKind the_kind, int64_t the_k = 5) : kind(the_kind), k(the_k) {}
  MetricKind kind;
  int64_t k;  // kTopK: the class counts if it is among the k largest
  // The file's spelling, which names the results, as in Keras; empty: today's name.
  std::string word = {};
  // Ignores the spelling.
  bool operator==(const MetricSpec& other) const { return kind == other.kind && k == other.k; }
};

// Whole numbers fed beside the features, int32 [batch, count]: row numbers of an embedding. Value
// type.
struct CategoryInput {
  std::string name;
  int64_t count = 1;  // of each example
  int64_t below = 0;  // an upper bound whatever the data; 0: none
  // How the numbers are made, if they aren't the data's own: "hash_bucket_size=1000", or the words
  // with a checksum.
  std::string meaning = {};
  // Number 0 stands behind the last number of an example that has fewer than `count`. An embedding
  // reads zeros for it, and leaves it out of a mean (as with Keras's mask_zero).
  bool is_padded = false;
  bool operator==(const CategoryInput&) const = default;
};

struct ModelSpec {
  std::vector<int64_t> input_shape;  // of one example, without the batch: [28, 28, 1]
  // The type that is fed; it follows from the format of the data. uint8 are pixels, which are
  // divided by 255; float32 and int32 are read unchanged.
  DType input_dtype = DType::kUInt8;
  // Whole numbers are classes, one for each example; float32 are targets, one for each unit of the
  // last layer.
  DType labels_dtype = DType::kUInt8;
  // From the data, too, in order of name. With `features_are_categories` the first of them is the
  // features.
  std::vector<CategoryInput> categories;
  bool features_are_categories = false;
  std::vector<LayerSpec> layers;
  LossSpec loss;
  bool accuracy = false;            // metrics: [accuracy]
  std::vector<MetricSpec> metrics;  // the others, in the order of the file, each once
  // Tensors of `graph` layers to evaluate beside the metrics, with their places.
  struct Scalar {
    std::string tensor;
    yaml::Mark mark;
  };
  std::vector<Scalar> scalars{};
  yaml::Mark mark;
  yaml::Mark loss_mark{};  // of the loss's value
  yaml::Mark shape_mark;   // of input.shape
  bool wantsEvaluation() const { return accuracy || !metrics.empty() || !scalars.empty(); }
  bool hasTargets() const { return labels_dtype == DType::kFloat32; }
};

}  // namespace dtf::model
