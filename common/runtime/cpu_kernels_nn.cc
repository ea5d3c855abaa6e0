// Losses and metrics; the semantics are in graph/standard_nn_ops.cc. The activations are in
// cpu_kernels_math.cc.

#include <algorithm>
#include <cmath>
#include <cstring>

#include "common/base/error.h"
#include "common/base/random_streams.h"
#include "common/runtime/cpu_kernels_internal.h"

namespace dtf::runtime {
namespace {

KernelFactory softmax(const Processor& cpu, const VectorLoops& loops) {
  return [cpu, loop = loops.softmax](const Operation& o) {
    const auto run = [cpu, loop, n = Rows(o.input_specs[0].shape)](const KernelArguments& a) {
      if (n.columns == 0) return;
      forRows(cpu, n, kFunctionWork, [&](int64_t row, int64_t rows) {
        loop(in(a, 0) + row * n.columns, out(a, 0) + row * n.columns, rows, n.columns);
      });
    };
    return makeKernel(run, kOverwritesAny);
  };
}

KernelFactory sparseCrossEntropy(const Processor& cpu, const VectorLoops& loops) {
  return [cpu, loop = loops.softmaxCrossEntropy](const Operation& o) {
    const Shape& shape = o.input_specs[0].shape;
    const LabelReader labels(o, 1, shape.dim(1));
    const auto run = [cpu, loop, labels, n = Rows(shape)](const KernelArguments& a) {
      const int32_t* const label = labels.read(a.inputs[1], a.workspace);
      forRows(cpu, n, kFunctionWork, [&](int64_t row, int64_t rows) {
        const int64_t at = row * n.columns;
        loop(in(a, 0) + at, label + row, out(a, 0) + row, out(a, 1) + at, rows, n.columns);
      });
    };
    // Only backprop has the size of the logits.
    return makeKernel(
        run, [](int output, int input) { return output == 1 && input == 0; },
        labels.workspaceBytes());
  };
}

KernelFactory targetsCrossEntropy(const Processor& cpu, const VectorLoops& loops) {
  return [cpu, loop = loops.targetsCrossEntropy](const Operation& o) {
    const auto run = [cpu, loop, n = Rows(o.input_specs[0].shape)](const KernelArguments& a) {
      forRows(cpu, n, kFunctionWork, [&](int64_t row, int64_t rows) {
        const int64_t at = row * n.columns;
        loop(in(a, 0) + at, in(a, 1) + at, out(a, 0) + row, out(a, 1) + at, rows, n.columns);
      });
    };
    return makeKernel(run, kOverwritesNothing);
  };
}

KernelFactory sigmoidCrossEntropyGrad(const Processor& cpu, const VectorLoops& loops) {
  return [cpu, loop = loops.sigmoidCrossEntropyGrad](const Operation& o) {
    const auto run = [cpu, loop, n = o.output_specs[0].shape.elements()](const KernelArguments& a) {
      forElements(cpu, n, kFunctionWork, [&](int64_t first, int64_t count) {
        loop(in(a, 0) + first, in(a, 1) + first, in(a, 2) + first, out(a, 0) + first, count);
      });
    };
    return makeKernel(run, kOverwritesAny);
  };
}

// The upper half of the Philox stream for masks; the lower half is the batch's.
constexpr uint32_t kDropoutStream =
    static_cast<uint32_t>(streamOf(RandomStream::kDropoutMasks, 0) >> 32);

KernelFactory dropout(const Processor& cpu, const VectorLoops& loops) {
  return [cpu, loop = loops.dropout](const Operation& o) {
    const double rate = o.attributeOr<double>("rate", 0);
    DropoutMask mask;
    mask.threshold = static_cast<uint32_t>(rate * 0x1p32);
    mask.scale = static_cast<float>(1 / (1 - rate));
    mask.counter[2] = kDropoutStream | static_cast<uint32_t>(o.attributeOr<int64_t>("layer", 0));
    const auto run = [cpu, loop, mask,
                      n = o.output_specs[0].shape.elements()](const KernelArguments& a) {
      uint64_t key[2];  // seed and batch; the bound memory may be unaligned
      std::memcpy(key, a.inputs[1], sizeof key);
      DropoutMask drawn = mask;
      drawn.key[0] = static_cast<uint32_t>(key[0]);
      drawn.key[1] = static_cast<uint32_t>(key[0] >> 32);
      drawn.counter[0] = static_cast<uint32_t>(key[1]);
      drawn.counter[1] = static_cast<uint32_t>(key[1] >> 32);
      forElements(cpu, n, kFunctionWork, [&](int64_t first, int64_t count) {
        DropoutMask part = drawn;
        part.first_block = static_cast<uint32_t>(first / kDropoutBlockElements);
        loop(in(a, 0) + first, part, out(a, 0) + first, count);
      });
    };
    return makeKernel(run, [](int, int input) { return input == 0; });
  };
}

KernelFactory oneHot(const Processor& cpu) {
  return [cpu](const Operation& o) {
    const Shape& shape = o.output_specs[0].shape;
    const LabelReader labels(o, 0, shape.dim(1));
    const auto run = [cpu, labels, rows = shape.dim(0),
                      depth = shape.dim(1)](const KernelArguments& a) {
      const int32_t* const label = labels.read(a.inputs[0], a.workspace);
      cpu.forRanges(rows, depth * kCopiedWork, [&](int64_t begin, int64_t end, int) {
        std::fill_n(out(a, 0) + begin * depth, (end - begin) * depth, 0.0f);
        for (int64_t row = begin; row < end; ++row) out(a, 0)[row * depth + label[row]] = 1.0f;
      });
    };
    return makeKernel(run, kOverwritesNothing, labels.workspaceBytes());
  };
}

std::unique_ptr<Kernel> accuracyKernel(const Operation& o) {
  const Shape& shape = o.input_specs[0].shape;
  const LabelReader labels(o, 1, shape.dim(1));
  const auto run = [labels, rows = shape.dim(0), columns = shape.dim(1)](const KernelArguments& a) {
    const int32_t* const label = labels.read(a.inputs[1], a.workspace);
    int64_t hits = 0;
    for (int64_t row = 0; row < rows; ++row) {
      const float* const logits = in(a, 0) + row * columns;
      hits += std::max_element(logits, logits + columns) - logits == label[row];
    }
    *out(a, 0) = static_cast<float>(hits) / static_cast<float>(rows);
  };
  return makeKernel(run, kOverwritesNothing, labels.workspaceBytes());
}

}  // namespace

LabelReader::LabelReader(const Operation& operation, size_t input, int64_t classes, Kind kind)
    : node_(operation.name),
      kind_(kind),
      dtype_(operation.input_specs[input].dtype),
      count_(operation.input_specs[input].shape.elements()),
      classes_(classes) {
  const bool float_labels = dtype_ == DType::kFloat32 && kind == Kind::kLabels;
  if (float_labels || classes > INT32_MAX) {
    throw Error(ErrorCode::kBadConfig, "Node '" + node_ +
                                           "': labels must be uint8, int32 or int64, and there "
                                           "must be fewer than 2^31 classes.");
  }
}

// NaN and numbers beyond int64 must not be cast.
bool isWhole(float value) {
  return std::abs(value) <= 0x1p31F && value == std::floor(value);
}

template <class T>
const int32_t* LabelReader::convert(const T* labels, int32_t* converted) const {
  for (int64_t i = 0; i < count_; ++i) {
    if constexpr (std::is_same_v<T, float>) {
      if (!isWhole(labels[i]))
        throw Error(ErrorCode::kBadData, "Node '" + node_ + "': index " + std::to_string(i) +
                                             " is " + std::to_string(labels[i]) +
                                             ", no whole number below 2^31. Check the data.");
    }
    const auto label = static_cast<int64_t>(labels[i]);
    if (label < 0 || label >= classes_) {
      const bool labels_kind = kind_ == Kind::kLabels;
      throw Error(ErrorCode::kBadData,
                  "Node '" + node_ + "': " + (labels_kind ? "the label of row " : "index ") +
                      std::to_string(i) + " is " + std::to_string(label) + ", it must be in [0, " +
                      std::to_string(classes_) + "). " +
                      (labels_kind ? "Check the labels' file and the model's last layer."
                                   : "Check the data and the size of the layer's table."));
    }
    if constexpr (!std::is_same_v<T, int32_t>) converted[i] = static_cast<int32_t>(label);
  }
  if constexpr (std::is_same_v<T, int32_t>) return labels;
  return converted;
}

const int32_t* LabelReader::read(const std::byte* labels, std::byte* workspace) const {
  const auto converted = reinterpret_cast<int32_t*>(workspace);
  switch (dtype_) {
    case DType::kUInt8:
      return convert(reinterpret_cast<const uint8_t*>(labels), converted);
    case DType::kInt64:
      return convert(reinterpret_cast<const int64_t*>(labels), converted);
    case DType::kFloat32:
      return convert(reinterpret_cast<const float*>(labels), converted);
    default:
      return convert(reinterpret_cast<const int32_t*>(labels), converted);
  }
}

void addNnKernels(KernelTable& table, const Processor& cpu) {
  const VectorLoops& loops = vectorLoops(cpu.isa);
  table.add("Softmax", DeviceType::kCpu, softmax(cpu, loops));
  table.add("SparseSoftmaxCrossEntropyWithLogits", DeviceType::kCpu,
            sparseCrossEntropy(cpu, loops));
  table.add("SoftmaxCrossEntropyWithLogits", DeviceType::kCpu, targetsCrossEntropy(cpu, loops));
  table.add("SigmoidCrossEntropyGrad", DeviceType::kCpu, sigmoidCrossEntropyGrad(cpu, loops));
  table.add("Dropout", DeviceType::kCpu, dropout(cpu, loops));
  table.add("OneHot", DeviceType::kCpu, oneHot(cpu));
  table.add("Accuracy", DeviceType::kCpu, accuracyKernel);
}

}  // namespace dtf::runtime
