#include "common/engine/optimizer_act.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/optimizer/gradient_math.h"
#include "common/optimizer/optimizer_text.h"
#include "common/optimizer/slice_norms.h"
#include "common/optimizer/sparse_update.h"

namespace dtf::engine {
namespace {

using graph::Graph;
using graph::Node;
using optimizer::kChunkElements;
using optimizer::kSlotsMax;
using optimizer::OptimizerClock;
using optimizer::UpdateArrays;
using optimizer::UpdateConstants;
using Bytes = std::span<const std::byte>;

// A jump of the step, as after a restore, costs products for the steps between, or for all before
// it: seconds at most.
constexpr int64_t kStepsMax = int64_t{1} << 32;

[[noreturn]] void refuseNode(ErrorCode code, const Node& node, const std::string& why) {
  throw Error(code, "node '" + node.name + "' (" + node.op + "): " + why);
}

cluster::OptimizerSpec specOf(const Node& node) {
  try {
    return optimizer::decodeOptimizer(node.attribute<std::string>("optimizer"));
  } catch (const Error& error) {
    refuseNode(error.code(), node, error.message());
  }
}

bool isSparse(const Node& node) {
  return node.op == "ApplySparseOptimizer";
}

uint64_t rowsOf(const graph::TensorSpec& table) {
  const uint64_t rows = static_cast<uint64_t>(table.shape.dim(0));
  return table.shape.elements() == 0 ? 0 : rows;
}

// A table without elements has nothing to look up; its rows count as one element long.
uint64_t rowElementsOf(const graph::TensorSpec& table) {
  const uint64_t rows = rowsOf(table);
  return rows == 0 ? 1 : static_cast<uint64_t>(table.shape.elements()) / rows;
}

optimizer::SparseGradient rowsFor(const Node& node, const graph::TensorSpec& table) {
  if (!isSparse(node)) return {1, 1};
  if (rowsOf(table) > UINT32_MAX)
    refuseNode(ErrorCode::kBadConfig, node,
               "the table has " + std::to_string(rowsOf(table)) + " rows; the most is " +
                   std::to_string(UINT32_MAX));
  return {std::max<uint64_t>(rowsOf(table), 1), rowElementsOf(table)};
}

// Whether the formula has the powers of beta1 and beta2.
bool usesPowers(cluster::OptimizerSpec::Kind kind) {
  using Kind = cluster::OptimizerSpec::Kind;
  return kind == Kind::kAdam || kind == Kind::kAdamW || kind == Kind::kLamb;
}

// Advances all arrays by `elements`.
UpdateArrays from(const UpdateArrays& all, uint64_t elements) {
  UpdateArrays rest = all;
  rest.old_parameters += elements;
  rest.new_parameters += elements;
  for (float*& slot : rest.slots)
    if (slot != nullptr) slot += elements;
  return rest;
}

}  // namespace

OptimizerAct::OptimizerAct(const Graph& part, const Node& node)
    : HostAct(node),
      name_(node.name),
      op_(node.op),
      spec_(specOf(node)),
      slots_(optimizer::slotCount(spec_)),
      variable_(part.spec(node.inputs.at(0))),
      clock_(spec_),
      is_sparse_(isSparse(node)),
      rows_(rowsFor(node, variable_)) {
  const size_t given = graph::variablesOf(node).size() - 1;
  if (given != slots_)
    refuse(ErrorCode::kBadConfig, std::string(cluster::optimizerName(spec_.kind)) + " has " +
                                      std::to_string(slots_) + " slots for each variable, got " +
                                      std::to_string(given));
  if (!is_sparse_) return;
  if (!optimizer::updatesRows(spec_))
    refuse(ErrorCode::kBadConfig, std::string(cluster::optimizerName(spec_.kind)) +
                                      " with these settings needs the whole gradient; use "
                                      "ApplyOptimizer");
  const graph::TensorSpec& indices = part.spec(node.inputs[node.inputs.size() - 2]);
  look_up_.dtype = indices.dtype;
  look_up_.count = static_cast<size_t>(indices.shape.elements());
}

void OptimizerAct::refuse(ErrorCode code, const std::string& why) const {
  throw Error(code, "node '" + name_ + "' (" + op_ + "): " + why);
}

void OptimizerAct::run(std::span<Variable* const> variables, std::span<const Bytes> inputs) {
  DTF_CHECK(variables.size() == slots_ + 1);
  DTF_CHECK(inputs.size() == (is_sparse_ ? 3u : 2u));
  checkVariables(variables);
  const UpdateConstants constants = constantsAt(inputs.back());
  if (is_sparse_) readRows(inputs);
  Arrays arrays;
  change(variables, arrays, constants, reinterpret_cast<const float*>(inputs[0].data()));
}

// Two nodes may share a variable by its name.
void OptimizerAct::checkVariables(std::span<Variable* const> variables) const {
  for (size_t i = 0; i < variables.size(); ++i)
    if (std::find(variables.begin(), variables.begin() + static_cast<ptrdiff_t>(i), variables[i]) !=
        variables.begin() + static_cast<ptrdiff_t>(i))
      refuse(ErrorCode::kBadConfig, "two of its inputs are one variable, by their shared_name");
}

// Goes on from the last run, as other clients of the variable count the same steps: the products
// are the same as from the start.
OptimizerClock::State OptimizerAct::clockAt(uint64_t applies) const {
  if (!usesPowers(spec_.kind)) return {applies, 1, 1};
  OptimizerClock::State state = clock_.state();
  if (applies < state.applies) return OptimizerClock::stateAfter(spec_, applies);
  for (; state.applies < applies; ++state.applies) {
    const double beta1 = state.beta1_power * spec_.beta1, beta2 = state.beta2_power * spec_.beta2;
    if (beta1 == state.beta1_power && beta2 == state.beta2_power) break;  // and never will change
    state.beta1_power = beta1;
    state.beta2_power = beta2;
  }
  state.applies = applies;
  return state;
}

UpdateConstants OptimizerAct::constantsAt(Bytes step) {
  int64_t steps = 0;
  DTF_CHECK(step.size() == sizeof(steps));
  std::memcpy(&steps, step.data(), sizeof(steps));
  if (steps < 0 || steps >= kStepsMax)
    refuse(ErrorCode::kTrainingFailed, "the step is " + std::to_string(steps) +
                                           ", but must be from 0 to " +
                                           std::to_string(kStepsMax - 1));
  const auto applies = static_cast<uint64_t>(steps);
  if (clock_.state().applies != applies) clock_.restore(clockAt(applies));
  return clock_.next();
}

void OptimizerAct::readRows(std::span<const Bytes> inputs) {
  look_up_.gradients = reinterpret_cast<const float*>(inputs[0].data());
  look_up_.ids = inputs[1].data();
  const uint64_t rows = rowsOf(variable_);
  const std::optional<size_t> bad = optimizer::firstBeyond(look_up_, rows);
  if (bad)
    refuse(ErrorCode::kTrainingFailed, "index " + std::to_string(*bad) +
                                           " of the batch is no row of the " +
                                           std::to_string(rows) + " of the table");
  rows_.set(look_up_);
}

// Takes the memory of all variables before it writes to any.
void OptimizerAct::change(std::span<Variable* const> variables, Arrays& arrays,
                          const UpdateConstants& constants, const float* gradient) {
  const size_t next = arrays.after.size();
  if (next == variables.size()) return apply(arrays, constants, gradient);
  variables[next]->change(true, [&](const std::byte* before, std::byte* after) {
    arrays.before.push_back(reinterpret_cast<const float*>(before));
    arrays.after.push_back(reinterpret_cast<float*>(after));
    change(variables, arrays, constants, gradient);
  });
}

void OptimizerAct::apply(const Arrays& arrays, const UpdateConstants& constants,
                         const float* gradient) {
  if (variable_.bytes() == 0) return;
  UpdateArrays all;
  all.old_parameters = arrays.before[0];
  all.new_parameters = arrays.after[0];
  for (size_t slot = 0; slot < slots_; ++slot) {
    all.slots[slot] = arrays.after[slot + 1];
    if (arrays.before[slot + 1] != arrays.after[slot + 1])  // a reader holds the old value
      std::memcpy(arrays.after[slot + 1], arrays.before[slot + 1], variable_.bytes());
  }
  const std::array<const float*, 1> gradients{gradient};
  all.gradients = gradients;
  const bool moves_all =
      optimizer::movesOtherRows(constants.kind) || constants.average_slot != kSlotsMax;
  if (!is_sparse_) {
    cluster::needsWholeVariables(constants.kind) ? applyWhole(all, constants)
                                                 : applyDense(all, constants);
  } else {
    moves_all ? applyAllRows(all, constants) : applyNamedRows(all, constants);
  }
}

UpdateArrays OptimizerAct::apart(UpdateArrays all) {
  if (all.old_parameters != all.new_parameters) return all;
  old_.assign(all.old_parameters, all.old_parameters + variable_.shape.elements());
  all.old_parameters = old_.data();
  return all;
}

// The formulae read and write different arrays, so an update in place copies a chunk at a time.
void OptimizerAct::applyDense(const UpdateArrays& all, const UpdateConstants& constants) {
  const auto elements = static_cast<uint64_t>(variable_.shape.elements());
  if (all.old_parameters != all.new_parameters)
    return optimizer::updateRange(constants, all, 0, elements);
  alignas(64) float chunk[kChunkElements];
  for (uint64_t at = 0; at < elements; at += kChunkElements) {
    const uint64_t n = std::min(kChunkElements, elements - at);
    UpdateArrays here = from(all, at);
    std::copy_n(here.old_parameters, n, chunk);
    here.old_parameters = chunk;
    const std::array<const float*, 1> gradients{all.gradients[0] + at};
    here.gradients = gradients;
    optimizer::updateRange(constants, here, 0, n);
  }
}

// lars and lamb need the norms of the whole variable first.
void OptimizerAct::applyWhole(const UpdateArrays& all, const UpdateConstants& constants) {
  const auto elements = static_cast<uint64_t>(variable_.shape.elements());
  const arena::Slice slice{0, 0, elements, 0};
  optimizer::SliceNorms norms({&slice, 1}, elements);
  const UpdateArrays arrays = apart(all);
  norms.measure(constants, arrays, 0, elements);
  norms.finish(constants);
  norms.update(constants, arrays, 0, elements);
}

void OptimizerAct::applyAllRows(const UpdateArrays& all, const UpdateConstants& constants) {
  const arena::SparseSlice slice{0, static_cast<uint32_t>(rows_.tableRows()), rows_.rowElements()};
  const arena::RowsView named{rows_.rows(), rows_.values().data()};
  optimizer::updateRows(constants, apart(all), slice, {&named, 1}, 0, slice.end(),
                        optimizer::OtherRows::kCopied);
}

// Gathers the rows that the batch names, with their slots, updates them as a table of their own,
// and puts them back.
void OptimizerAct::applyNamedRows(const UpdateArrays& all, const UpdateConstants& constants) {
  if (all.old_parameters != all.new_parameters)
    std::memcpy(all.new_parameters, all.old_parameters, variable_.bytes());
  const std::span<const uint32_t> rows = rows_.rows();
  if (rows.empty()) return;
  const uint64_t row = rows_.rowElements(), elements = rows.size() * row;
  std::vector<float*> places{all.new_parameters};
  for (size_t slot = 0; slot < slots_; ++slot) places.push_back(all.slots[slot]);
  named_.resize((places.size() + 1) * elements);
  const auto part = [&](size_t i) { return named_.data() + i * elements; };
  for (size_t i = 0; i < places.size(); ++i)
    for (size_t k = 0; k < rows.size(); ++k)
      std::copy_n(places[i] + rows[k] * row, row, part(i) + k * row);
  UpdateArrays compact;
  compact.old_parameters = part(0);
  compact.new_parameters = part(places.size());
  for (size_t slot = 0; slot < slots_; ++slot) compact.slots[slot] = part(slot + 1);
  std::vector<uint32_t> ids(rows.size());
  for (uint32_t k = 0; k < ids.size(); ++k) ids[k] = k;
  const arena::SparseSlice slice{0, static_cast<uint32_t>(rows.size()), row};
  const arena::RowsView named{ids, rows_.values().data()};
  optimizer::updateRows(constants, compact, slice, {&named, 1}, 0, elements,
                        optimizer::OtherRows::kCopied);
  for (size_t i = 0; i < places.size(); ++i)
    for (size_t k = 0; k < rows.size(); ++k)
      std::copy_n(part(i == 0 ? places.size() : i) + k * row, row, places[i] + rows[k] * row);
}

}  // namespace dtf::engine
