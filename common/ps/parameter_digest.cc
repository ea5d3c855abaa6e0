#include "common/ps/parameter_digest.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace dtf::ps {

namespace {

struct Part {
  uint64_t begin;
  uint64_t count;
  const float* values;
};

void addBytes(uint64_t& hash, const float* values, uint64_t count) {
  const auto* bytes = reinterpret_cast<const std::byte*>(values);
  for (uint64_t i = 0; i < count * sizeof(float); ++i)
    hash = (hash ^ static_cast<uint64_t>(bytes[i])) * 0x100000001b3;
}

}  // namespace

uint64_t parameterDigest(const ParameterLayout& layout,
                         const std::function<const float*(uint32_t ps_task)>& arena) {
  std::vector<std::vector<Part>> parts(layout.variables.size());
  for (uint32_t task = 0; task < layout.shards.size(); ++task) {
    for (const Slice& slice : layout.shards[task].slices)
      parts[slice.variable].push_back({slice.begin, slice.count, arena(task) + slice.offset});
  }
  uint64_t hash = 0xcbf29ce484222325;
  for (std::vector<Part>& variable : parts) {
    std::sort(variable.begin(), variable.end(),
              [](const Part& a, const Part& b) { return a.begin < b.begin; });
    for (const Part& part : variable) addBytes(hash, part.values, part.count);
  }
  return hash;
}

}  // namespace dtf::ps
