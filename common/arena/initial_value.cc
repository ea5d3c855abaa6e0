#include "common/arena/initial_value.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

#include "common/base/check.h"
#include "common/base/random.h"
#include "common/base/random_streams.h"
#include "common/graph/initializer.h"

namespace dtf::arena {

namespace {

float truncatedNormal(Random& random) {
  float value = random.normal();
  while (value < -2 || value > 2) value = random.normal();
  return value;
}

// Fills `values` with results of `draw`, and calls `progress` after each block with the number of
// elements drawn.
template <class Draw>
void fill(std::span<float> values, const BlockDone& progress, Draw draw) {
  for (size_t begin = 0; begin < values.size();) {
    const size_t end = std::min<size_t>(values.size(), begin + kInitialBlockElements);
    for (size_t i = begin; i < end; ++i) values[i] = draw();
    begin = end;
    if (progress) progress(begin);
  }
}

// The numbers of inputs and outputs that a variable connects. Value type.
struct Fans {
  double inputs = 1, outputs = 1;
};

Fans fansOf(const Shape& shape) {
  const int rank = shape.rank();
  if (rank == 0) return {};
  if (rank <= 2)
    return {static_cast<double>(shape.dim(0)), rank == 1 ? 1.0 : static_cast<double>(shape.dim(1))};
  const auto channels = static_cast<double>(shape.dim(rank - 2));
  const auto filters = static_cast<double>(shape.dim(rank - 1));
  const double window = static_cast<double>(shape.elements()) / (channels * filters);
  return {window * channels, window * filters};
}

double varianceOf(std::string_view initializer, const Fans& fans) {
  if (initializer.starts_with("glorot_")) return 2 / (fans.inputs + fans.outputs);
  if (initializer.starts_with("he_")) return 2 / fans.inputs;
  DTF_CHECK_MSG(initializer.starts_with("lecun_"), std::string(initializer));
  return 1 / fans.inputs;
}

// Returns the distribution and its width, if the name has one of its own.
std::optional<graph::Spread> spreadOf(std::string_view initializer, const Fans& fans) {
  if (initializer == "truncated_normal")
    return graph::Spread{initializer, 1.0 / std::sqrt(fans.inputs)};
  if (initializer == "random_uniform" || initializer == "random_normal")
    return graph::Spread{initializer, double{0.05F}};
  return graph::spreadOf(initializer);
}

// The standard deviation of a standard normal distribution that is truncated at two.
constexpr double kTruncatedDeviation = 0.87962566103423978;

// Uses eight independent sums, always in the same order.
double dot(const double* a, const double* b, size_t n) {
  constexpr size_t kLanes = 8;
  double lanes[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (size_t lane = 0; lane < kLanes; ++lane) lanes[lane] += a[i + lane] * b[i + lane];
  for (; i < n; ++i) lanes[0] += a[i] * b[i];
  return std::accumulate(lanes, lanes + kLanes, 0.0);
}

// Fills `rows` with as many orthonormal rows of `length` elements as fit. Draws normal numbers, and
// orthogonalises them by the modified Gram-Schmidt method twice, as one pass loses digits (Giraud,
// Langou and Rozloznik, 2005).
void drawOrthonormalRows(Random& random, std::vector<double>& rows, size_t length,
                         const BlockDone& progress) {
  DTF_CHECK(length > 0 && rows.size() % length == 0 && rows.size() / length <= length);
  for (size_t begin = 0; begin < rows.size(); begin += length) {
    const std::span<double> row(rows.data() + begin, length);
    for (double& element : row) element = random.normal();
    for (int pass = 0; pass < 2; ++pass) {
      for (size_t other = 0; other < begin; other += length) {
        const double* const q = rows.data() + other;
        const double along = dot(row.data(), q, length);
        for (size_t i = 0; i < length; ++i) row[i] -= along * q[i];
      }
    }
    const double norm = std::sqrt(dot(row.data(), row.data(), length));
    for (double& element : row) element /= norm;
    if (progress) progress(begin + length);
  }
}

void drawOrthogonal(Random& random, Tensor& tensor, const BlockDone& progress) {
  const std::span<float> values = tensor.as<float>();
  const Shape& shape = tensor.shape();
  const size_t columns = shape.rank() == 0 ? 1 : static_cast<size_t>(shape.dim(shape.rank() - 1));
  if (values.empty()) return;
  const size_t rows = values.size() / columns;
  std::vector<double> drawn(values.size());
  drawOrthonormalRows(random, drawn, std::max(rows, columns), progress);
  for (size_t row = 0; row < rows; ++row)
    for (size_t column = 0; column < columns; ++column)
      values[row * columns + column] = static_cast<float>(
          rows < columns ? drawn[row * columns + column] : drawn[column * rows + row]);
}

}  // namespace

Tensor initialValue(std::string_view initializer, const Shape& shape, uint64_t seed, uint32_t index,
                    const BlockDone& progress) {
  Tensor tensor(DType::kFloat32, shape);
  if (initializer == "zeros") return tensor;
  if (initializer == "ones") {
    std::ranges::fill(tensor.as<float>(), 1.0F);
    return tensor;
  }
  if (const std::optional<double> constant = graph::constantOf(initializer)) {
    std::ranges::fill(tensor.as<float>(), static_cast<float>(*constant));
    return tensor;
  }
  Random random(seed, streamOf(RandomStream::kInitialValues, index));
  if (initializer == "orthogonal") {
    drawOrthogonal(random, tensor, progress);
    return tensor;
  }
  const Fans fans = fansOf(shape);
  if (const std::optional<graph::Spread> spread = spreadOf(initializer, fans)) {
    const auto by = static_cast<float>(spread->by);
    if (spread->name == "random_uniform")
      fill(tensor.as<float>(), progress, [&] { return random.uniform(-by, by); });
    else if (spread->name == "random_normal")
      fill(tensor.as<float>(), progress, [&] { return by * random.normal(); });
    else
      fill(tensor.as<float>(), progress, [&] { return by * truncatedNormal(random); });
    return tensor;
  }
  const double variance = varianceOf(initializer, fans);
  if (initializer.ends_with("_uniform")) {
    const auto limit = static_cast<float>(std::sqrt(3 * variance));
    fill(tensor.as<float>(), progress, [&] { return random.uniform(-limit, limit); });
    return tensor;
  }
  DTF_CHECK_MSG(initializer.ends_with("_normal"), std::string(initializer));
  const auto deviation = static_cast<float>(std::sqrt(variance) / kTruncatedDeviation);
  fill(tensor.as<float>(), progress, [&] { return deviation * truncatedNormal(random); });
  return tensor;
}

}  // namespace dtf::arena
