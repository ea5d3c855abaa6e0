#include "common/arena/parameter_digest.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "common/base/check.h"
#include "common/base/checksum.h"

namespace dtf::arena {

namespace {

static_assert(std::endian::native == std::endian::little, "the digest is of little-endian floats");

struct Part {
  uint64_t begin;
  uint64_t count;
  const float* values;
};

}  // namespace

uint64_t parameterDigest(const ParameterLayout& layout,
                         const std::function<const float*(uint32_t ps_task)>& arena) {
  std::vector<std::vector<Part>> parts(layout.variables.size());
  for (uint32_t task = 0; task < layout.shards.size(); ++task) {
    for (const Slice& slice : layout.shards[task].slices)
      parts[slice.variable].push_back({slice.begin, slice.count, arena(task) + slice.offset});
  }
  Checksum digest;
  for (std::vector<Part>& variable : parts) {
    std::sort(variable.begin(), variable.end(),
              [](const Part& a, const Part& b) { return a.begin < b.begin; });
    uint64_t next = 0;  // every element counts, and counts once
    for (const Part& part : variable) {
      DTF_CHECK(part.begin == next);
      digest.update(part.values, part.count * sizeof(float));
      next += part.count;
    }
  }
  return digest.value();
}

}  // namespace dtf::arena
