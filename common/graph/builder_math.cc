// The builder's functions for arithmetic that is not in every model, reductions and random numbers.

#include <utility>

#include "common/graph/builder.h"

namespace dtf::graph {

Output Builder::div(Output a, Output b) {
  return op("Div", {a, b});
}
Output Builder::maximum(Output a, Output b) {
  return op("Maximum", {a, b});
}
Output Builder::minimum(Output a, Output b) {
  return op("Minimum", {a, b});
}
Output Builder::pow(Output a, Output b) {
  return op("Pow", {a, b});
}
Output Builder::exp(Output x) {
  return op("Exp", {x});
}
Output Builder::log(Output x) {
  return op("Log", {x});
}
Output Builder::sqrt(Output x) {
  return op("Sqrt", {x});
}
Output Builder::rsqrt(Output x) {
  return op("Rsqrt", {x});
}
Output Builder::cast(Output x, DType dtype) {
  return op("Cast", {x}, {{"dtype", dtype}});
}

Output Builder::mean(Output x, Shape axes, bool keep_dims) {
  return op("Mean", {x}, {{"axes", std::move(axes)}, {"keep_dims", keep_dims}});
}
Output Builder::sum(Output x, Shape axes, bool keep_dims) {
  return op("Sum", {x}, {{"axes", std::move(axes)}, {"keep_dims", keep_dims}});
}
Output Builder::max(Output x, Shape axes, bool keep_dims) {
  return op("Max", {x}, {{"axes", std::move(axes)}, {"keep_dims", keep_dims}});
}
Output Builder::min(Output x, Shape axes, bool keep_dims) {
  return op("Min", {x}, {{"axes", std::move(axes)}, {"keep_dims", keep_dims}});
}
Output Builder::argMax(Output x, int64_t axis) {
  return op("ArgMax", {x}, {{"axis", axis}});
}
Output Builder::broadcastTo(Output x, Shape shape) {
  return op("BroadcastTo", {x}, {{"shape", std::move(shape)}});
}

Output Builder::randomUniform(Output seed, Shape shape, int64_t stream) {
  return op("StatelessRandomUniform", {seed}, {{"shape", std::move(shape)}, {"stream", stream}});
}
Output Builder::randomNormal(Output seed, Shape shape, int64_t stream) {
  return op("StatelessRandomNormal", {seed}, {{"shape", std::move(shape)}, {"stream", stream}});
}

}  // namespace dtf::graph
