#include "common/engine/optimizer_act.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/isa.h"
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

OptimizerUpdate::OptimizerUpdate(const Node& node, const graph::TensorSpec& variable, size_t slots,
                                 bool is_sparse, runtime::ComputePool* pool)
    : name_(node.name),
      op_(node.op),
      spec_(specOf(node)),
      slots_(optimizer::slotCount(spec_)),
      variable_(variable),
      clock_(spec_),
      is_sparse_(is_sparse),
      threads_(bestIsa(), pool) {
  if (slots != slots_)
    refuse(ErrorCode::kBadConfig, std::string(cluster::optimizerName(spec_.kind)) + " has " +
                                      std::to_string(slots_) + " slots for each variable, got " +
                                      std::to_string(slots));
  if (!is_sparse_) return;
  if (variable_.shape.rank() == 0) refuse(ErrorCode::kBadConfig, "a scalar has no rows");
  if (rowsOf(variable_) > UINT32_MAX)
    refuse(ErrorCode::kBadConfig, "the table has " + std::to_string(rowsOf(variable_)) +
                                      " rows; the most is " + std::to_string(UINT32_MAX));
  if (!optimizer::updatesRows(spec_))
    refuse(ErrorCode::kBadConfig, std::string(cluster::optimizerName(spec_.kind)) +
                                      " with these settings needs the whole gradient; use "
                                      "ApplyOptimizer");
}

void OptimizerUpdate::refuse(ErrorCode code, const std::string& why) const {
  throw Error(code, "node '" + name_ + "' (" + op_ + "): " + why);
}

void OptimizerUpdate::run(std::span<Variable* const> variables, const StepGradients& gradients,
                          int64_t step) {
  DTF_CHECK(variables.size() == slots_ + 1);
  DTF_CHECK(is_sparse_ ? !gradients.rows.empty() : !gradients.dense.empty());
  checkVariables(variables);
  const UpdateConstants constants = constantsAt(step);
  if (is_sparse_) readRows(gradients.rows);
  Arrays arrays;
  change(variables, arrays, constants, gradients.dense);
}

// Two nodes may share a variable by its name.
void OptimizerUpdate::checkVariables(std::span<Variable* const> variables) const {
  for (size_t i = 0; i < variables.size(); ++i)
    if (std::find(variables.begin(), variables.begin() + static_cast<ptrdiff_t>(i), variables[i]) !=
        variables.begin() + static_cast<ptrdiff_t>(i))
      refuse(ErrorCode::kBadConfig, "two of its inputs are one variable, by their shared_name");
}

// Goes on from the last run, as other clients of the variable count the same steps: the products
// are the same as from the start.
OptimizerClock::State OptimizerUpdate::clockAt(uint64_t applies) const {
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

UpdateConstants OptimizerUpdate::constantsAt(int64_t steps) {
  if (steps < 0 || steps >= kStepsMax)
    refuse(ErrorCode::kTrainingFailed, "the step is " + std::to_string(steps) +
                                           ", but must be from 0 to " +
                                           std::to_string(kStepsMax - 1));
  const auto applies = static_cast<uint64_t>(steps);
  if (clock_.state().applies != applies) clock_.restore(clockAt(applies));
  return clock_.next();
}

void OptimizerUpdate::readRows(std::span<const optimizer::LookUp> look_ups) {
  const uint64_t rows = rowsOf(variable_);
  for (const optimizer::LookUp& look_up : look_ups) {
    const std::optional<size_t> bad = optimizer::firstBeyond(look_up, rows);
    if (bad)
      refuse(ErrorCode::kTrainingFailed, "index " + std::to_string(*bad) +
                                             " of the batch is no row of the " +
                                             std::to_string(rows) + " of the table");
  }
  while (rows_.size() > look_ups.size()) rows_.pop_back();
  while (rows_.size() < look_ups.size())
    rows_.emplace_back(std::max<uint64_t>(rows, 1), rowElementsOf(variable_));
  for (size_t i = 0; i < look_ups.size(); ++i) rows_[i].set(look_ups[i]);
}

std::vector<arena::RowsView> OptimizerUpdate::rowsOfAll() const {
  std::vector<arena::RowsView> views;
  for (const optimizer::SparseGradient& each : rows_)
    views.push_back({each.rows(), each.values().data()});
  return views;
}

// Takes the memory of all variables before it writes to any.
void OptimizerUpdate::change(std::span<Variable* const> variables, Arrays& arrays,
                             const UpdateConstants& constants, Dense gradients) {
  const size_t next = arrays.after.size();
  if (next == variables.size()) return apply(arrays, constants, gradients);
  variables[next]->change(true, [&](const std::byte* before, std::byte* after) {
    arrays.before.push_back(reinterpret_cast<const float*>(before));
    arrays.after.push_back(reinterpret_cast<float*>(after));
    change(variables, arrays, constants, gradients);
  });
}

void OptimizerUpdate::apply(const Arrays& arrays, const UpdateConstants& constants,
                            Dense gradients) {
  if (variable_.bytes() == 0) return;
  UpdateArrays all;
  all.old_parameters = arrays.before[0];
  all.new_parameters = arrays.after[0];
  for (size_t slot = 0; slot < slots_; ++slot) {
    all.slots[slot] = arrays.after[slot + 1];
    if (arrays.before[slot + 1] != arrays.after[slot + 1])  // a reader holds the old value
      std::memcpy(arrays.after[slot + 1], arrays.before[slot + 1], variable_.bytes());
  }
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

UpdateArrays OptimizerUpdate::apart(UpdateArrays all) {
  if (all.old_parameters != all.new_parameters) return all;
  old_.assign(all.old_parameters, all.old_parameters + variable_.shape.elements());
  all.old_parameters = old_.data();
  return all;
}

// The formulae read and write different arrays, so an update in place copies a chunk at a time.
void OptimizerUpdate::applyDense(const UpdateArrays& all, const UpdateConstants& constants) {
  const auto elements = static_cast<uint64_t>(variable_.shape.elements());
  if (all.old_parameters != all.new_parameters)
    return inRanges(elements, [&](uint64_t begin, uint64_t end) {
      optimizer::updateRange(constants, all, begin, end);
    });
  inRanges(elements,
           [&](uint64_t begin, uint64_t end) { updateInPlace(all, constants, begin, end); });
}

void OptimizerUpdate::updateInPlace(const UpdateArrays& all, const UpdateConstants& constants,
                                    uint64_t begin, uint64_t end) {
  alignas(64) float chunk[kChunkElements];
  for (uint64_t at = begin; at < end; at += kChunkElements) {
    const uint64_t n = std::min(kChunkElements, end - at);
    UpdateArrays here = from(all, at);
    std::copy_n(here.old_parameters, n, chunk);
    here.old_parameters = chunk;
    std::vector<const float*> gradients(all.gradients.begin(), all.gradients.end());
    for (const float*& gradient : gradients) gradient += at;
    here.gradients = gradients;
    optimizer::updateRange(constants, here, 0, n);
  }
}

// lars and lamb need the norms of the whole variable first.
void OptimizerUpdate::applyWhole(const UpdateArrays& all, const UpdateConstants& constants) {
  const auto elements = static_cast<uint64_t>(variable_.shape.elements());
  const arena::Slice slice{0, 0, elements, 0};
  optimizer::SliceNorms norms({&slice, 1}, elements);
  const UpdateArrays arrays = apart(all);
  inRanges(elements,
           [&](uint64_t begin, uint64_t end) { norms.measure(constants, arrays, begin, end); });
  norms.finish(constants);
  inRanges(elements,
           [&](uint64_t begin, uint64_t end) { norms.update(constants, arrays, begin, end); });
}

void OptimizerUpdate::applyAllRows(const UpdateArrays& all, const UpdateConstants& constants) {
  const arena::SparseSlice slice{0, static_cast<uint32_t>(rows_[0].tableRows()),
                                 rows_[0].rowElements()};
  const UpdateArrays arrays = apart(all);
  const std::vector<arena::RowsView> rows = rowsOfAll();
  inRanges(slice.end(), [&](uint64_t begin, uint64_t end) {
    optimizer::updateRows(constants, arrays, slice, rows, begin, end,
                          optimizer::OtherRows::kCopied);
  });
}

// Returns the rows that any gradient names, ascending, each once.
std::vector<uint32_t> OptimizerUpdate::namedRows() const {
  std::vector<uint32_t> rows;
  for (const optimizer::SparseGradient& each : rows_)
    rows.insert(rows.end(), each.rows().begin(), each.rows().end());
  if (rows_.size() == 1) return rows;
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  return rows;
}

// Gathers the rows that the batch names, with their slots, updates them as a table of their own,
// and puts them back.
void OptimizerUpdate::applyNamedRows(const UpdateArrays& all, const UpdateConstants& constants) {
  if (all.old_parameters != all.new_parameters)
    std::memcpy(all.new_parameters, all.old_parameters, variable_.bytes());
  const std::vector<uint32_t> rows = namedRows();
  if (rows.empty()) return;
  const uint64_t row = rows_[0].rowElements(), elements = rows.size() * row;
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
  std::vector<std::vector<uint32_t>> ids;
  ids.reserve(rows_.size());
  std::vector<arena::RowsView> named;
  for (const optimizer::SparseGradient& each : rows_) {
    std::vector<uint32_t>& own = ids.emplace_back();
    size_t place = 0;
    for (const uint32_t id : each.rows()) {
      while (rows[place] != id) ++place;
      own.push_back(static_cast<uint32_t>(place));
    }
    named.push_back({own, each.values().data()});
  }
  const arena::SparseSlice slice{0, static_cast<uint32_t>(rows.size()), row};
  optimizer::updateRows(constants, compact, slice, named, 0, elements,
                        optimizer::OtherRows::kCopied);
  for (size_t i = 0; i < places.size(); ++i)
    for (size_t k = 0; k < rows.size(); ++k)
      std::copy_n(part(i == 0 ? places.size() : i) + k * row, row, places[i] + rows[k] * row);
}

OptimizerAct::OptimizerAct(const Graph& part, const Node& node, runtime::ComputePool* pool)
    : HostAct(node),
      is_sparse_(isSparse(node)),
      update_(node, part.spec(node.inputs.at(0)), graph::variablesOf(node).size() - 1, is_sparse_,
              pool) {
  if (!is_sparse_) return;
  const graph::TensorSpec& indices = part.spec(node.inputs[node.inputs.size() - 2]);
  look_up_.dtype = indices.dtype;
  look_up_.count = static_cast<size_t>(indices.shape.elements());
}

void OptimizerAct::run(std::span<Variable* const> variables, std::span<const Bytes> inputs) {
  DTF_CHECK(inputs.size() == (is_sparse_ ? 3u : 2u));
  int64_t step = 0;
  DTF_CHECK(inputs.back().size() == sizeof(step));
  std::memcpy(&step, inputs.back().data(), sizeof(step));
  const std::array<const float*, 1> gradient{reinterpret_cast<const float*>(inputs[0].data())};
  if (is_sparse_) {
    look_up_.gradients = gradient[0];
    look_up_.ids = inputs[1].data();
    return update_.run(variables, {.dense = {}, .rows = {&look_up_, 1}}, step);
  }
  update_.run(variables, {.dense = gradient, .rows = {}}, step);
}

}  // namespace dtf::engine
