// Random numbers. All tensors are float32 unless noted.
//
//   op                      inputs        attributes        outputs
//   StatelessRandomUniform  seed int64[2] shape,            numbers in [0, 1), multiples of 2^-24
//                                         [stream int in [0, 2^24)]
//   StatelessRandomNormal   likewise      likewise          numbers of mean 0 and variance 1
//
// Like TensorFlow's ops of these names: the numbers are a pure function of seed and stream, the
// same on every device and in every run. For new numbers in each step, feed another seed, such as
// [the program's seed, the step]. Ops with equal seeds draw equal numbers unless their streams
// differ.
// //
// Element i uses the 32-bit number i % 4 of philox({i / 4, seed[1] low, seed[1] high, 0x12000000 |
// stream}, {seed[0] low, seed[0] high}) of base/random.h; 0x12 is the stream's use, see
// base/random_streams.h. Uniform: its upper 24 bits. Normal: elements 2j and 2j + 1 have u and v
// from their numbers m and n, u = (m + 1) / 2^32, v = n / 2^32: sqrt(-2 log u) * cos(2 pi v), and
// the same with sin. Blocks are counted in 32 bits, so there are at most 2^34 elements.

#include "common/base/error.h"
#include "common/graph/shape_functions.h"
#include "common/graph/standard_ops.h"

namespace dtf::graph {
namespace {

using Type = AttributeDef::Type;

constexpr int64_t kStreamsMax = int64_t{1} << 24;
constexpr int64_t kDrawnMax = int64_t{1} << 34;

std::vector<TensorSpec> inferRandom(std::span<const TensorSpec> inputs,
                                    const Attributes& attributes) {
  if (inputs[0] != TensorSpec{DType::kInt64, Shape{2}}) {
    throw Error(ErrorCode::kBadConfig, "seed " + specText(inputs[0]) + " must be int64[2]");
  }
  const int64_t stream = get<int64_t>(attributes, "stream");
  if (stream < 0 || stream >= kStreamsMax) {
    throw Error(ErrorCode::kBadConfig, "stream must be from 0 to " +
                                           std::to_string(kStreamsMax - 1) + ", it is " +
                                           std::to_string(stream));
  }
  const Shape& shape = get<Shape>(attributes, "shape");
  if (shape.elements() > kDrawnMax) {
    throw Error(ErrorCode::kBadConfig, "the shape " + shape.str() + " has more than " +
                                           std::to_string(kDrawnMax) + " elements");
  }
  return {floats(shape)};
}

}  // namespace

void addRandomOps(OpCatalog& catalog) {
  for (const char* const op : {"StatelessRandomUniform", "StatelessRandomNormal"}) {
    catalog.add({op, 1, {{"shape", Type::kShape}, {"stream", Type::kInt, false}}, inferRandom});
  }
}

}  // namespace dtf::graph
