// Gradients of elementwise arithmetic with broadcasting, and of reductions.

#include "common/graph/gradient_functions.h"
#include "common/graph/gradients.h"

namespace dtf::graph {
namespace {

using Request = GradientRequest;

Shape tensorShape(Builder& b, Output tensor) {
  return b.graph().spec(tensor).shape;
}

// Reduces `dy`, a gradient of the broadcast shape, to the shape of input `index`: sums over the
// repetitions of each element.
Output toInput(Builder& b, const Request& r, size_t index, Output dy) {
  const Shape to = tensorShape(b, in(r, index)), from = tensorShape(b, dy);
  if (to == from) return dy;
  std::vector<int64_t> axes;
  const int added = from.rank() - to.rank();
  for (int axis = 0; axis < from.rank(); ++axis)
    if (axis < added || to.dim(axis - added) != from.dim(axis)) axes.push_back(axis);
  return b.reshape(b.sum(dy, Shape(std::move(axes))), to);
}

// Returns the gradients of both inputs, reduced to the inputs' shapes; calls `of_a` and `of_b` only
// if their gradients are wanted.
template <class A, class B>
Gradients both(Builder& b, const Request& r, const A& of_a, const B& of_b) {
  Gradients gradients(2);
  if (r.wanted[0]) gradients[0] = toInput(b, r, 0, of_a());
  if (r.wanted[1]) gradients[1] = toInput(b, r, 1, of_b());
  return gradients;
}

Gradients addGradient(Builder& b, const Request& r) {
  const auto dy = [&] { return dyOf(r); };
  return both(b, r, dy, dy);
}

Gradients subGradient(Builder& b, const Request& r) {
  return both(
      b, r, [&] { return dyOf(r); }, [&] { return b.scale(dyOf(r), -1); });
}

Gradients mulGradient(Builder& b, const Request& r) {
  return both(
      b, r, [&] { return b.mul(dyOf(r), in(r, 1)); }, [&] { return b.mul(dyOf(r), in(r, 0)); });
}

// With y = a / b: dy / b, and -dy * a / b^2 = -dy * (y / b). This order keeps 0 / b at 0 however
// small b is.
Gradients divGradient(Builder& b, const Request& r) {
  return both(
      b, r, [&] { return b.div(dyOf(r), in(r, 1)); },
      [&] { return b.scale(b.mul(dyOf(r), b.div(yOf(r), in(r, 1))), -1); });
}

Gradients squaredDifferenceGradient(Builder& b, const Request& r) {
  const Output twice = b.scale(b.mul(dyOf(r), b.sub(in(r, 0), in(r, 1))), 2);
  return both(
      b, r, [&] { return twice; }, [&] { return b.scale(twice, -1); });
}

// With y = a^b: dy * b * a^(b - 1), and dy * y * log(a). As in TensorFlow, the logarithm counts as
// 0 unless a > 0: 0^b is 0 for all nearby b, and a negative a has no power for them.
Gradients powGradient(Builder& b, const Request& r) {
  const auto of_power = [&] {
    const Output base = in(r, 0);
    const Shape shape = tensorShape(b, base);
    const Output is_above = b.less(b.constant({}, 0), base);
    const auto above = [&](Output x, double otherwise) {
      return Output{b.node("Select", {is_above, x, b.constant(shape, otherwise)})};
    };
    return b.mul(b.mul(dyOf(r), yOf(r)), above(b.log(above(base, 1)), 0));
  };
  return both(
      b, r,
      [&] {
        const Output less = b.pow(in(r, 0), b.sub(in(r, 1), b.constant({}, 1)));
        return b.mul(b.mul(dyOf(r), in(r, 1)), less);
      },
      of_power);
}

// All of dy goes to the chosen input; if both are equal, to a, as in TensorFlow. Selects instead of
// multiplying by 0 or 1: an infinite dy makes no NaN for the other input.
Gradients extremumGradient(Builder& b, const Request& r, bool largest) {
  const Output dy = dyOf(r), none{b.node("ZerosLike", {dy})};
  const Output is_a = b.lessEqual(in(r, largest ? 1 : 0), in(r, largest ? 0 : 1));
  return both(
      b, r,
      [&] {
        return Output{b.node("Select", {is_a, dy, none})};
      },
      [&] {
        return Output{b.node("Select", {is_a, none, dy})};
      });
}

// Each input gets the gradient of its elements, by selection again: a NaN on one side stays there.
Gradients selectGradient(Builder& b, const Request& r) {
  const Output dy = dyOf(r), none{b.node("ZerosLike", {dy})};
  Gradients gradients(3);
  if (r.wanted[1]) gradients[1] = Output{b.node("Select", {in(r, 0), dy, none})};
  if (r.wanted[2]) gradients[2] = Output{b.node("Select", {in(r, 0), none, dy})};
  return gradients;
}

Gradients expGradient(Builder& b, const Request& r) {
  return {b.mul(dyOf(r), yOf(r))};
}
Gradients logGradient(Builder& b, const Request& r) {
  return {b.div(dyOf(r), in(r, 0))};
}
// 1 / (2 sqrt(x))
Gradients sqrtGradient(Builder& b, const Request& r) {
  return {b.scale(b.div(dyOf(r), yOf(r)), 0.5)};
}
// With y = x^(-1/2): -y^3 / 2.
Gradients rsqrtGradient(Builder& b, const Request& r) {
  const Output y = yOf(r);
  return {b.scale(b.mul(dyOf(r), b.mul(b.mul(y, y), y)), -0.5)};
}

// From float to float only: whole numbers have no gradient.
Gradients castGradient(Builder&, const Request& r) {
  return {dyOf(r)};
}

// Repeats `of_result`, shaped like the output, to all elements that were reduced to it.
Output spread(Builder& b, const Request& r, Output of_result) {
  const Shape x = tensorShape(b, in(r, 0));
  const Shape axes = r.node.attribute<Shape>("axes");
  std::vector<int64_t> kept = x.dims();
  for (const int64_t axis : axes.dims()) kept[static_cast<size_t>(axis)] = 1;
  if (axes.rank() == 0) kept.clear();
  return b.broadcastTo(b.reshape(of_result, Shape(std::move(kept))), x);
}

Gradients sumGradient(Builder& b, const Request& r) {
  return {spread(b, r, dyOf(r))};
}

// The largest (or smallest) elements share dy equally, as in TensorFlow. If the result is NaN, none
// matches it.
Gradients extremeGradient(Builder& b, const Request& r) {
  const Output is_one = b.cast(b.equal(in(r, 0), spread(b, r, yOf(r))), DType::kFloat32);
  const Output ones =
      b.sum(is_one, r.node.attribute<Shape>("axes"), r.node.attribute<bool>("keep_dims"));
  return {b.mul(is_one, spread(b, r, b.div(dyOf(r), ones)))};
}

Gradients meanGradient(Builder& b, const Request& r) {
  const Shape x = tensorShape(b, in(r, 0));
  if (r.node.outputs[0].shape.rank() == 0) return {b.meanGrad(dyOf(r), x)};
  const auto means = static_cast<double>(r.node.outputs[0].shape.elements());
  return {b.scale(spread(b, r, dyOf(r)), means / static_cast<double>(x.elements()))};
}

Gradients broadcastToGradient(Builder& b, const Request& r) {
  return {toInput(b, r, 0, dyOf(r))};
}

}  // namespace

void addMathGradients(GradientTable& table) {
  table.add("Add", addGradient);
  table.add("Sub", subGradient);
  table.add("Mul", mulGradient);
  table.add("Div", divGradient);
  table.add("SquaredDifference", squaredDifferenceGradient);
  table.add("Maximum", [](Builder& b, const Request& r) { return extremumGradient(b, r, true); });
  table.add("Minimum", [](Builder& b, const Request& r) { return extremumGradient(b, r, false); });
  table.add("Pow", powGradient);
  table.add("Select", selectGradient);
  table.add("Exp", expGradient);
  table.add("Log", logGradient);
  table.add("Sqrt", sqrtGradient);
  table.add("Rsqrt", rsqrtGradient);
  table.add("Cast", castGradient);
  table.add("Sum", sumGradient);
  table.add("Mean", meanGradient);
  table.add("Max", extremeGradient);
  table.add("Min", extremeGradient);
  table.add("BroadcastTo", broadcastToGradient);
}

}  // namespace dtf::graph
