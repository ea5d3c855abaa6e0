// Parts of tensors, and BroadcastTo; the semantics are in common/graph/standard_array_ops.cc and
// standard_math_ops.cc.

#include "gpu/element_kernels.h"

namespace dtf::gpu {
namespace {

// The place of element i of a dense tensor in another one. Value type, passed to the device.
struct PlacesIn {
  Strided<1> strided;
  int64_t offset = 0;  // of the element at the origin
  DTF_HOST_DEVICE int64_t at(int64_t i) const { return offset + strided.at(i).of[0]; }
};

// Returns the places of `part` within `whole`, from `begin` on.
PlacesIn partOf(const Operation& o, const TensorSpec& part, const TensorSpec& whole,
                const std::vector<int64_t>& begin) {
  const std::vector<int64_t> strides = denseStrides(whole.dims);
  PlacesIn made = {stridedOf<1>(o, part.dims, {strides})};
  for (size_t i = 0; i < begin.size(); ++i) made.offset += begin[i] * strides[i];
  return made;
}

struct ToWholeAt {
  PlacesIn place;
  const float* part;
  float* whole;
  DTF_HOST_DEVICE void operator()(int64_t i) const { whole[place.at(i)] = part[i]; }
};
struct FromWholeAt {
  PlacesIn place;
  const float* whole;
  float* part;
  DTF_HOST_DEVICE void operator()(int64_t i) const { part[i] = whole[place.at(i)]; }
};
struct ZeroAt {
  float* to;
  DTF_HOST_DEVICE void operator()(int64_t i) const { to[i] = 0; }
};

class ConcatKernel final : public Kernel {
 public:
  explicit ConcatKernel(const Operation& o) {
    const auto axis = static_cast<size_t>(o.integer("axis"));
    std::vector<int64_t> begin(o.outputs[0].dims.size());
    for (const TensorSpec& input : o.inputs) {
      parts_.push_back({partOf(o, input, o.outputs[0], begin), input.elements()});
      begin[axis] += input.dims[axis];
    }
  }
  void launch(Device& device, const Arguments& a) override {
    for (size_t i = 0; i < parts_.size(); ++i)
      forElements(device, parts_[i].elements, ToWholeAt{parts_[i].place, a.in(i), a.out(0)});
  }

 private:
  struct Part {
    PlacesIn place;
    int64_t elements;
  };
  std::vector<Part> parts_;
};

// Reads the output from places of the input.
class FromWholeKernel final : public Kernel {
 public:
  FromWholeKernel(const Operation& o, PlacesIn place)
      : place_(place), n_(o.outputs[0].elements()) {}
  void launch(Device& device, const Arguments& a) override {
    forElements(device, n_, FromWholeAt{place_, a.in(0), a.out(0)});
  }

 private:
  const PlacesIn place_;
  const int64_t n_;
};

std::unique_ptr<Kernel> slice(const Operation& o) {
  return std::make_unique<FromWholeKernel>(o,
                                           partOf(o, o.outputs[0], o.inputs[0], o.list("begin")));
}

std::unique_ptr<Kernel> transpose(const Operation& o) {
  const std::vector<int64_t> strides = denseStrides(o.inputs[0].dims);
  std::vector<int64_t> moved;
  for (const int64_t axis : o.list("permutation"))
    moved.push_back(strides[static_cast<size_t>(axis)]);
  return std::make_unique<FromWholeKernel>(o,
                                           PlacesIn{stridedOf<1>(o, o.outputs[0].dims, {moved})});
}

std::unique_ptr<Kernel> broadcastTo(const Operation& o) {
  const std::vector<int64_t>& dims = o.outputs[0].dims;
  return std::make_unique<FromWholeKernel>(
      o, PlacesIn{stridedOf<1>(o, dims, {repeatedStrides(o.inputs[0], dims)})});
}

class PadKernel final : public Kernel {
 public:
  explicit PadKernel(const Operation& o)
      : place_(partOf(o, o.inputs[0], o.outputs[0], o.list("before"))),
        n_(o.inputs[0].elements()),
        whole_(o.outputs[0].elements()) {}
  void launch(Device& device, const Arguments& a) override {
    forElements(device, whole_, ZeroAt{a.out(0)});
    forElements(device, n_, ToWholeAt{place_, a.in(0), a.out(0)});
  }

 private:
  const PlacesIn place_;
  const int64_t n_, whole_;
};

}  // namespace

void addArrayKernels(KernelTable& table) {
  table["Concat"] = make<ConcatKernel>;
  table["Slice"] = slice;
  table["Pad"] = make<PadKernel>;
  table["Transpose"] = transpose;
  table["BroadcastTo"] = broadcastTo;
}

}  // namespace dtf::gpu
