#include "common/arena/parameter_layout.h"

#include <bit>
#include <string_view>

#include "common/base/check.h"

namespace dtf::arena {

namespace {

// FNV-1a, 64 bits: http://www.isthe.com/chongo/tech/comp/fnv/. Numbers go in as eight bytes, lowest
// first, and every list and text is preceded by its length, so that no two layouts give the same
// bytes.
class Fnv1a {
 public:
  void number(uint64_t value) {
    for (int shift = 0; shift < 64; shift += 8) byte(static_cast<uint8_t>(value >> shift));
  }
  void text(std::string_view value) {
    number(value.size());
    for (const char c : value) byte(static_cast<uint8_t>(c));
  }
  uint64_t value() const { return hash_; }

 private:
  void byte(uint8_t value) { hash_ = (hash_ ^ value) * 0x100000001b3u; }
  uint64_t hash_ = 0xcbf29ce484222325u;
};

uint64_t alignUp(uint64_t elements) {
  return (elements + kSliceAlignment - 1) / kSliceAlignment * kSliceAlignment;
}

void addSlices(ParameterLayout& layout, const VariableParts& variable, uint32_t index) {
  uint64_t covered = 0;
  for (const VariableParts::Part& part : variable.parts) {
    DTF_CHECK_MSG(part.ps_task < layout.shards.size(), variable.name);
    DTF_CHECK_MSG(part.begin == covered, variable.name);
    DTF_CHECK_MSG(!variable.is_sparse || part.count % rowElements(variable.shape) == 0,
                  variable.name);
    covered += part.count;
    if (part.count == 0) continue;
    ShardLayout& shard = layout.shards[part.ps_task];
    shard.slices.push_back({index, part.begin, part.count, shard.elements});
    shard.elements = alignUp(shard.elements + part.count);
  }
  DTF_CHECK_MSG(covered == static_cast<uint64_t>(variable.shape.elements()), variable.name);
}

}  // namespace

uint64_t ParameterLayout::fingerprint() const {
  Fnv1a hash;
  hash.number(variables.size());
  for (const VariableInfo& variable : variables) {
    hash.text(variable.name);
    hash.number(static_cast<uint64_t>(variable.shape.rank()));
    for (const int64_t dim : variable.shape.dims()) hash.number(static_cast<uint64_t>(dim));
    hash.number(variable.momentum ? 1 : 0);
    hash.number(std::bit_cast<uint64_t>(variable.momentum.value_or(0)));
    hash.number(variable.is_sparse ? 1 : 0);
  }
  hash.number(shards.size());
  for (const ShardLayout& shard : shards) {
    hash.number(shard.slices.size());
    for (const Slice& slice : shard.slices) {
      hash.number(slice.variable);
      hash.number(slice.begin);
      hash.number(slice.count);
      hash.number(slice.offset);
    }
    hash.number(shard.elements);
  }
  return hash.value();
}

uint64_t rowElements(const Shape& table) {
  DTF_CHECK(table.rank() > 0);
  uint64_t elements = 1;
  for (int axis = 1; axis < table.rank(); ++axis)
    elements *= static_cast<uint64_t>(table.dim(axis));
  return elements;
}

ParameterLayout makeLayout(const std::vector<VariableParts>& variables, uint32_t ps_tasks) {
  ParameterLayout layout;
  layout.shards.resize(ps_tasks);
  for (const VariableParts& variable : variables)
    layout.variables.push_back(
        {variable.name, variable.shape, variable.momentum, variable.is_sparse});
  for (auto i = static_cast<uint32_t>(variables.size()); i-- > 0;)
    if (!variables[i].is_sparse) addSlices(layout, variables[i], i);
  for (uint32_t i = 0; i < variables.size(); ++i)
    if (variables[i].is_sparse) addSlices(layout, variables[i], i);
  return layout;
}

}  // namespace dtf::arena
