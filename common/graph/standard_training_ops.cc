// The ops of training programs: optimizers, the initial values of variables, and clipping. The
// engine computes them, not a kernel (engine/host_act.h), so they run on every device. All are
// stateful: never merged, never folded.
//
//   op                    inputs          attributes        outputs
//   ApplyOptimizer        variable,       optimizer string  none; the optimizer takes one step
//                         its slots ..,
//                         gradient: same,
//                         step int64[]
//   ApplySparseOptimizer  variable [R,..],optimizer string  none; likewise, with the gradient of
//                         its slots ..,                     the rows that indices name, as of
//                         gradient [indices' dimensions,    Gather; rows named twice are summed
//                         ..], indices,
//                         step int64[]
//   InitializeVariable    variable,       initializer       none; the variable gets its initial
//                         seed int64[]    string,           value
//                                         stream int
//   IsVariableInitialized variable        -                 uint8[]: 1 if it has a value
//   ClipByGlobalNorm      gradients ..    clip_norm double, the gradients, scaled so that their
//                                         [sparse string]   global norm is at most clip_norm; their
//                                                           norm before, float32[]
//
// `optimizer` is the text of optimizer/optimizer_text.h: "adam learning_rate=0.001 beta1=0.9". The
// slots are variables of the same shape on the same device, in the order of optimizer/optimizer.h.
// `step` counts the steps before this one: the learning rate and Adam's correction depend on it.
//
// `sparse` lists the gradients that are of rows, from 0 on: "0, 2". The next input has their
// indices. A clipped gradient of rows has the sum of all rows of one index in the place of the
// first, and 0 in the others' places, which sums to the same gradient.

#include <algorithm>
#include <charconv>
#include <cmath>

#include "common/base/error.h"
#include "common/base/text.h"
#include "common/graph/shape_functions.h"
#include "common/graph/standard_ops.h"

namespace dtf::graph {
namespace {

using Type = AttributeDef::Type;
using Specs = std::vector<TensorSpec>;

void wantCounter(const TensorSpec& spec, const char* name) {
  if (spec == TensorSpec{DType::kInt64, Shape()}) return;
  throw Error(ErrorCode::kBadConfig, std::string(name) + " " + specText(spec) + " must be int64[]");
}

// Checks the variable and its slots, the first inputs up to `others` at the end.
void wantSlots(std::span<const TensorSpec> inputs, size_t others) {
  if (inputs.size() <= others)
    throw Error(ErrorCode::kBadConfig, "takes at least " + std::to_string(others + 1) +
                                           " inputs, got " + std::to_string(inputs.size()));
  wantFloat(inputs[0], "variable");
  for (size_t i = 1; i < inputs.size() - others; ++i)
    wantSame(inputs[0], "variable", inputs[i], ("slot " + std::to_string(i - 1)).c_str());
  wantCounter(inputs.back(), "step");
}

Specs inferUpdate(std::span<const TensorSpec> inputs, const Attributes&) {
  wantSlots(inputs, 2);
  wantSame(inputs[0], "variable", inputs[inputs.size() - 2], "gradient");
  return {};
}

Specs inferSparseUpdate(std::span<const TensorSpec> inputs, const Attributes&) {
  wantSlots(inputs, 3);
  const TensorSpec& indices = inputs[inputs.size() - 2];
  const TensorSpec& gradient = inputs[inputs.size() - 3];
  wantSame(gradient, "gradient", gathered(inputs[0], indices), "the gathered rows");
  wantGradientOfRows(gradient, indices);
  return {};
}

Specs inferInitialize(std::span<const TensorSpec> inputs, const Attributes& attributes) {
  wantInitializer(get<std::string>(attributes, "initializer"), get<int64_t>(attributes, "stream"));
  if (inputs[0].dtype != DType::kInt64) wantFloat(inputs[0], "variable");
  wantCounter(inputs[1], "seed");
  return {};
}

Specs inferIsInitialized(std::span<const TensorSpec>, const Attributes&) {
  return {{DType::kUInt8, Shape()}};
}

Specs inferClip(std::span<const TensorSpec> inputs, const Attributes& attributes) {
  const double norm = get<double>(attributes, "clip_norm");
  if (!(norm > 0) || !std::isfinite(norm))
    throw Error(ErrorCode::kBadConfig,
                "clip_norm must be a number above 0, it is " + std::to_string(norm));
  const std::vector<size_t> sparse = sparseGradients(attributes);
  Specs specs;
  auto next = sparse.begin();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool is_sparse = next != sparse.end() && *next == specs.size();
    if (is_sparse && i + 1 == inputs.size())
      throw Error(ErrorCode::kBadConfig, "the last gradient is of rows and has no indices");
    if (is_sparse)
      wantGradientOfRows(inputs[i], inputs[i + 1]);
    else
      wantFloat(inputs[i], ("gradient " + std::to_string(specs.size())).c_str());
    specs.push_back(inputs[i]);
    if (!is_sparse) continue;
    ++next;
    ++i;
  }
  if (next != sparse.end())
    throw Error(ErrorCode::kBadConfig,
                "sparse lists the gradients of rows in ascending order, and " +
                    std::to_string(*next) + " is none of the " + std::to_string(specs.size()) +
                    " gradients");
  specs.push_back(floats(Shape()));
  return specs;
}

}  // namespace

std::vector<size_t> sparseGradients(const Attributes& attributes) {
  const std::string& text = get<std::string>(attributes, "sparse");
  std::vector<size_t> gradients;
  for (const std::string& word : text.empty() ? std::vector<std::string>() : split(text, ',')) {
    const size_t begin = std::min(word.find_first_not_of(' '), word.size());
    size_t gradient = 0;
    const auto [end, error] =
        std::from_chars(word.data() + begin, word.data() + word.size(), gradient);
    if (error != std::errc() || end != word.data() + word.size())
      throw Error(ErrorCode::kBadConfig,
                  "sparse is '" + text + "', but must be a list of numbers, as 0, 2");
    gradients.push_back(gradient);
  }
  return gradients;
}

void addTrainingOps(OpCatalog& catalog) {
  const AttributeDef optimizer{"optimizer", Type::kString};
  catalog.add({"ApplyOptimizer", -1, {optimizer}, inferUpdate, true});
  catalog.add({"ApplySparseOptimizer", -1, {optimizer}, inferSparseUpdate, true});
  catalog.add({"InitializeVariable",
               2,
               {{"initializer", Type::kString}, {"stream", Type::kInt}},
               inferInitialize,
               true});
  catalog.add({"IsVariableInitialized", 1, {}, inferIsInitialized, true});
  catalog.add({"ClipByGlobalNorm",
               -1,
               {{"clip_norm", Type::kDouble}, {"sparse", Type::kString, false}},
               inferClip,
               true});
}

}  // namespace dtf::graph
