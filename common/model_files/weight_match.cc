#include "common/model_files/weight_match.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/text.h"
#include "common/model/former_names.h"
#include "common/model_files/weight_names.h"
#include "common/model_files/weight_order.h"

namespace dtf::model_files {

namespace {

// Words of other programs and of dtf; the model's variable decides between several.
constexpr std::pair<std::string_view, std::string_view> kWords[] = {
    {"weight", "weights"},
    {"kernel", "weights"},
    {"weight", "gamma"},
    {"weight", "embeddings"},
    {"bias", "biases"},
    {"bias", "beta"},
    {"running_mean", "moving_mean"},
    {"running_var", "moving_variance"},
};

bool sameName(std::string name, std::string_view variable) {
  constexpr std::string_view kTheirs = "/downsample/", kOurs = "/shortcut/";
  if (name == variable) return true;
  std::replace(name.begin(), name.end(), '.', '/');
  if (const size_t at = name.find(kTheirs); at != std::string::npos)
    name.replace(at, kTheirs.size(), kOurs);
  if (name == variable) return true;
  const size_t last = name.rfind('/') + 1;  // 0 where there is none
  const std::string_view layer = std::string_view(name).substr(0, last);
  const std::string_view word = std::string_view(name).substr(last);
  if (model::todaysVariable(name) == model::todaysVariable(variable)) return true;
  return variable.starts_with(layer) &&
         std::any_of(std::begin(kWords), std::end(kWords), [&](const auto& each) {
           return each.first == word && each.second == variable.substr(last);
         });
}

// A depthwise filter may have its channels and multiples in one dimension.
bool fits(const Shape& held, const Shape& wanted, bool is_depthwise) {
  if (held == wanted) return true;
  return is_depthwise && held.rank() == 4 && wanted.rank() == 4 && held.dim(0) == wanted.dim(0) &&
         held.dim(1) == wanted.dim(1) && held.dim(2) == 1 && held.elements() == wanted.elements();
}

Shape transposedShape(const Shape& matrix) {
  return {matrix.dim(1), matrix.dim(0)};
}

// Turns one tensor into the variable of its name.
class Turning {
 public:
  Turning(const FoundTensor& tensor, const WantedWeights& wanted, const WantedModel& model,
          const std::vector<int64_t>& input)
      : tensor_(tensor), wanted_(wanted), model_(model), input_(input) {}

  // Sets `value` and `from`, or returns why it can't.
  std::optional<std::string> run(MatchedWeights& to) const {
    const bool by_use = wanted_.use == WeightUse::kMatrix || wanted_.use == WeightUse::kFilter;
    if (tensor_.layout == WeightLayout::kUnknown && by_use)
      return "no Gemm, MatMul or Conv of the model reads it as it is";
    const bool foreign = tensor_.layout == WeightLayout::kPyTorch;
    if (foreign && wanted_.use == WeightUse::kOther)
      return fmt::format("PyTorch keeps no such thing as {}", wanted_.name);
    std::vector<float> values(tensor_.value.as<float>().begin(), tensor_.value.as<float>().end());
    const Shape& held = tensor_.value.shape();
    Shape shape = held;
    if (foreign && by_use) {
      if (held.rank() != wanted_.shape.rank()) return misfit();
      const bool matrix = held.rank() == 2;
      const Shape filter = matrix ? Shape{held.dim(0), held.dim(1), 1, 1} : held;
      if (filter.rank() != 4) return misfit();
      shape = matrix ? transposedShape(held) : channelsLast(filter);
      values = channelsLast(filter, values);
    }
    if (!fits(shape, wanted_.shape, wanted_.is_depthwise)) return misfit();
    const bool moved = rowsDiffer();
    if (moved) values = inOwnRows(values);
    to.value = Tensor(DType::kFloat32, wanted_.shape);
    DTF_CHECK(to.value.bytes() == values.size() * sizeof(float));
    if (!values.empty()) std::memcpy(to.value.data(), values.data(), to.value.bytes());
    to.from = tensor_.name;
    if (tensor_.turned || (foreign && by_use))
      to.from += wanted_.use == WeightUse::kMatrix ? ", transposed" : ", turned to channels last";
    if (moved) to.from += ", its rows from channels first to last";
    return std::nullopt;
  }

 private:
  std::string misfit() const {
    if (tensor_.layout != WeightLayout::kPyTorch || wanted_.use != WeightUse::kMatrix ||
        wanted_.shape.rank() != 2)
      return fmt::format("{} is {}", wanted_.name, wanted_.shape.str());
    return fmt::format("{} is {}, to PyTorch {}", wanted_.name, wanted_.shape.str(),
                       transposedShape(wanted_.shape).str());
  }

  [[noreturn]] void fail(const std::string& why) const {
    throw Error(ErrorCode::kBadConfig,
                fmt::format("{} {}: in which order its rows go can't be known: {}. Nothing was "
                            "imported; bring it to the order of {} and state --layout dtf",
                            tensor_.name, tensor_.value.shape().str(), why, wanted_.name));
  }

  // Whether the rows are ordered by channel, height, width, and dtf's otherwise.
  bool rowsDiffer() const {
    if (tensor_.layout == WeightLayout::kDtf) return false;
    if (!wanted_.rows.known)
      fail(fmt::format("the input of {} was reshaped to or from an image, and not flattened",
                       wanted_.name));
    if (wanted_.rows.channels_first.empty()) return false;
    switch (tensor_.layout) {
      case WeightLayout::kPyTorch:
      case WeightLayout::kChannelRows:
        return true;
      case WeightLayout::kInputRows:
        return inputIsChannelsFirst();
      default:
        fail("the ONNX model doesn't flatten an image right before it");
    }
  }

  // For an ONNX model that flattens its input: compares the sizes of the input in both models.
  bool inputIsChannelsFirst() const {
    const std::vector<int64_t>& own = model_.input_shape;
    const bool last = own.size() == 3 && input_ == own;
    const bool first = own.size() == 3 && input_ == std::vector<int64_t>{own[2], own[0], own[1]};
    if (first != last) return first;
    fail(fmt::format("an example is [{}] in the ONNX model and [{}] here", fmt::join(input_, ", "),
                     fmt::join(own, ", ")));
  }

  std::vector<float> inOwnRows(const std::vector<float>& values) const {
    const std::vector<int64_t>& places = wanted_.rows.channels_first;
    DTF_CHECK(!places.empty() && values.size() % places.size() == 0);
    const size_t width = values.size() / places.size();
    std::vector<float> own(values.size());
    for (size_t row = 0; row < places.size(); ++row)
      std::copy_n(values.begin() + places[row] * static_cast<int64_t>(width), width,
                  own.begin() + static_cast<int64_t>(row * width));
    return own;
  }

  const FoundTensor& tensor_;
  const WantedWeights& wanted_;
  const WantedModel& model_;
  const std::vector<int64_t>& input_;
};

// Returns the variable of that name. A name that PyTorch's DataParallel has put "module." before is
// also tried without it.
const WantedWeights* variableNamed(const WantedModel& wanted, const std::string& name) {
  const auto named = [&wanted](const std::string& word) {
    const auto found =
        std::find_if(wanted.variables.begin(), wanted.variables.end(),
                     [&word](const auto& each) { return sameName(word, each.name); });
    return found == wanted.variables.end() ? nullptr : &*found;
  };
  if (const WantedWeights* const found = named(name)) return found;
  const std::optional<std::string> inner = withoutModule(name);
  return inner ? named(*inner) : nullptr;
}

template <class Tensor>
std::string nameText(const Tensor& tensor) {
  return tensor.renamed.empty() ? tensor.name
                                : fmt::format("{}, read as {}", tensor.name, tensor.renamed);
}

// An unreadable tensor matters only if a variable has its name: the variable would be drawn anew.
void checkSkipped(const WantedModel& wanted, const std::vector<SkippedTensor>& skipped) {
  for (const SkippedTensor& tensor : skipped)
    if (const WantedWeights* const variable = variableNamed(wanted, tensor.matchedName()))
      throw Error(ErrorCode::kBadConfig,
                  fmt::format("{}, which is {} of the model, can't be read: {}. Nothing was "
                              "imported",
                              printable(tensor.name), variable->name, printable(tensor.why)));
}

}  // namespace

WeightMatch matchWeights(const WantedModel& wanted, const FoundWeights& weights) {
  checkSkipped(wanted, weights.skipped);
  WeightMatch match;
  match.found.resize(wanted.variables.size());
  for (const SkippedTensor& tensor : weights.skipped)
    match.unused.push_back(fmt::format("{}: {}", nameText(tensor), tensor.why));
  for (const SkippedTensor& tensor : weights.excluded)
    match.unused.push_back(fmt::format("{}: {}", tensor.name, tensor.why));
  for (const FoundTensor& tensor : weights.tensors) {
    const WantedWeights* const variable = variableNamed(wanted, tensor.matchedName());
    const std::string title = fmt::format("{} {}", nameText(tensor), tensor.value.shape().str());
    if (variable == nullptr) {
      match.unused.push_back(title + ": the model has no such variable");
      continue;
    }
    auto& found = match.found[static_cast<size_t>(variable - wanted.variables.data())];
    if (found) {
      match.unused.push_back(fmt::format("{}: {} is {}", title, variable->name, found->from));
      continue;
    }
    MatchedWeights turned;
    if (const auto why = Turning(tensor, *variable, wanted, weights.input).run(turned))
      match.unused.push_back(fmt::format("{}: {}", title, *why));
    else
      found = std::move(turned);
  }
  return match;
}

}  // namespace dtf::model_files
