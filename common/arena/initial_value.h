#pragma once

// The values of variables before the first step, by the words of graph/initializer.h.

#include <cstdint>
#include <functional>
#include <string_view>

#include "common/tensor/shape.h"
#include "common/tensor/tensor.h"

namespace dtf::arena {

// Returns the initial value of a variable, a pure function of all arguments. `index` is its place
// among the model's variables, so that equal shapes get different numbers.
//   glorot_uniform, _normal  variance 2 / (inputs + outputs): Glorot and Bengio, AISTATS 2010
//   he_uniform, _normal      variance 2 / inputs: He et al., ICCV 2015
//   lecun_uniform, _normal   variance 1 / inputs: LeCun et al., Neural Networks: Tricks of the
//                            Trade
//   random_uniform           from -0.05 to 0.05, Keras's default; =0.1: from -0.1 to 0.1
//   random_normal            normal with standard deviation 0.05, Keras's default; =0.1: 0.1
//   truncated_normal         normal with standard deviation 1/sqrt(inputs), drawn again beyond two;
//                            =0.1: standard deviation 0.1
//   orthogonal               orthonormal columns, or rows if there are fewer of them: Saxe et
//                            al., ICLR 2014; the matrix is [all dimensions but the last, the last]
//   zeros, ones; constant=0.1: that number
// For a matrix [inputs, outputs] these are the numbers of inputs and outputs. For the filters
// [height, width, channels, filters] of a convolution, they are channels and filters, times height
// * width. A *_normal is truncated at two standard deviations, and widened so that it has the
// variance, as in Keras. DTF_CHECKs that the initializer is one of these, as the graph has
// validated it. Calls `progress` after every block with the number of elements drawn.
inline constexpr uint64_t kInitialBlockElements = uint64_t{1} << 20;
using BlockDone = std::function<void(uint64_t elements)>;
Tensor initialValue(std::string_view initializer, const Shape& shape, uint64_t seed, uint32_t index,
                    const BlockDone& progress = nullptr);

}  // namespace dtf::arena
