#include "common/model/activation.h"

#include "common/base/check.h"

namespace dtf::model {

std::string_view nameOf(Activation activation) {
  std::string_view names = kActivationNames;
  for (auto skipped = static_cast<size_t>(activation); skipped > 0; --skipped) {
    const size_t bar = names.find('|');
    DTF_CHECK(bar != std::string_view::npos);
    names.remove_prefix(bar + 1);
  }
  return names.substr(0, names.find('|'));
}

graph::Output activate(graph::Builder& ops, Activation activation, graph::Output x) {
  switch (activation) {
    case Activation::kNone:
      return x;
    case Activation::kRelu:
      return ops.relu(x);
    case Activation::kSigmoid:
      return ops.sigmoid(x);
    case Activation::kTanh:
      return ops.tanh(x);
    case Activation::kRelu6:
      return ops.relu6(x);
    case Activation::kLeakyRelu:
      return ops.leakyRelu(x, kLeakyReluAlpha);
    case Activation::kElu:
      return ops.elu(x);
    case Activation::kGelu:
      return ops.gelu(x);
    case Activation::kSilu:
      return ops.silu(x);
    case Activation::kSoftplus:
      return ops.softplus(x);
    case Activation::kSoftmax:
      return ops.softmax(x);
  }
  DTF_CHECK_MSG(false, std::to_string(static_cast<int>(activation)));
}

}  // namespace dtf::model
