// The products of cuBLASLt and cuDNN as plain sums, for tests of the code around them.

#include "gpu/bfloat16.h"
#include "gpu/convolution.h"
#include "gpu/element_kernels.h"
#include "gpu/product.h"

namespace dtf::gpu {
namespace {

// float32 or bfloat16, read and written as numbers.
class Numbers {
 public:
  Numbers(const std::byte* data, Type type) : data_(const_cast<std::byte*>(data)), type_(type) {}
  float operator[](int64_t i) const {
    if (type_ == Type::kBFloat16) return reinterpret_cast<const BFloat16*>(data_)[i];
    return reinterpret_cast<const float*>(data_)[i];
  }
  void set(int64_t i, double value) const {
    const auto rounded = static_cast<float>(value);
    if (type_ == Type::kBFloat16) {
      reinterpret_cast<BFloat16*>(data_)[i] = rounded;
    } else {
      reinterpret_cast<float*>(data_)[i] = rounded;
    }
  }

 private:
  std::byte* data_;
  Type type_;
};

struct ProductAt {
  Product p;
  Numbers a, b, c;
  void operator()(int64_t i) const {
    const int64_t row = i / p.n, column = i % p.n;
    double sum = 0;
    for (int64_t j = 0; j < p.k; ++j)
      sum += static_cast<double>(p.transpose_a ? a[j * p.m + row] : a[row * p.k + j]) *
             static_cast<double>(p.transpose_b ? b[column * p.k + j] : b[j * p.n + column]);
    c.set(i, sum);
  }
};

class HostMatMul final : public Kernel {
 public:
  explicit HostMatMul(const Operation& o)
      : p_(o), factors_(o.inputs[0].type), product_(o.outputs[0].type) {}
  void launch(Device& device, const Arguments& a) override {
    forElements(
        device, p_.m * p_.n,
        ProductAt{p_, {a.inputs[0], factors_}, {a.inputs[1], factors_}, {a.outputs[0], product_}});
  }

 private:
  const Product p_;
  const Type factors_, product_;
};

class HostFusedMatMul final : public Kernel {
 public:
  explicit HostFusedMatMul(const Operation& o)
      : product_(o), p_(o), relu_(o.flag("relu")), n_(o.outputs[0].elements()) {}
  void launch(Device& device, const Arguments& a) override {
    product_.launch(device, a);
    for (int64_t i = 0; i < n_; ++i) {
      const float sum = a.out(0)[i] + a.in(2)[i % p_.n];
      a.out(0)[i] = relu_ && sum < 0 ? 0 : sum;  // a NaN stays one
    }
  }

 private:
  HostMatMul product_;
  const Product p_;
  const bool relu_;
  const int64_t n_;
};

// f(index in x, index in the filter, index in y) for every product that a convolution adds up.
template <class F>
void forTaps(const Convolution& c, const F& f) {
  const int64_t group_out = c.out_channels / c.groups;
  for (int64_t y = 0; y < c.outElements(); ++y) {
    const int64_t o = y % c.out_channels, column = y / c.out_channels % c.out_width;
    const int64_t row = y / c.out_channels / c.out_width % c.out_height;
    const int64_t image = y / c.out_channels / c.out_width / c.out_height;
    for (int64_t tap = 0; tap < c.taps(); ++tap) {
      const int64_t channel = tap % c.group_channels;
      const int64_t j = tap / c.group_channels % c.window.width.size;
      const int64_t i = tap / c.group_channels / c.window.width.size;
      const Axis &h = c.window.height, &w = c.window.width;
      const int64_t from_row = row * h.stride - h.before + i * h.dilation;
      const int64_t from_column = column * w.stride - w.before + j * w.dilation;
      if (from_row < 0 || from_row >= c.height || from_column < 0 || from_column >= c.width)
        continue;
      const int64_t x = ((image * c.height + from_row) * c.width + from_column) * c.channels +
                        o / group_out * c.group_channels + channel;
      f(x, tap * c.out_channels + o, y);
    }
  }
}

template <Pass kPass>
class HostConvolution final : public Kernel {
 public:
  explicit HostConvolution(const Operation& o)
      : c_(o, kPass),
        n_(o.outputs[0].elements()),
        types_{o.inputs[0].type, o.inputs[1].type},
        made_(o.outputs[0].type) {}
  void launch(Device& device, const Arguments& a) override {
    std::vector<double> sums(static_cast<size_t>(n_));
    const Numbers first(a.inputs[0], types_[0]), second(a.inputs[1], types_[1]);
    forTaps(c_, [&](int64_t x, int64_t filter, int64_t y) {
      const auto add = [&](int64_t to, float u, float v) {
        sums[static_cast<size_t>(to)] += static_cast<double>(u) * static_cast<double>(v);
      };
      if constexpr (kPass == Pass::kForward) add(y, first[x], second[filter]);
      if constexpr (kPass == Pass::kBackpropInput) add(x, first[filter], second[y]);
      if constexpr (kPass == Pass::kBackpropFilter) add(filter, first[x], second[y]);
    });
    const Numbers made(a.outputs[0], made_);
    for (int64_t i = 0; i < n_; ++i) made.set(i, sums[static_cast<size_t>(i)]);
    device.countLaunch();
  }

 private:
  const Convolution c_;
  const int64_t n_;
  const Type types_[2], made_;
};

}  // namespace

void addMatMulKernel(KernelTable& table) {
  table["MatMul"] = make<HostMatMul>;
  table["_FusedMatMul"] = make<HostFusedMatMul>;
}

void addConvolutionKernels(KernelTable& table) {
  table["Conv2D"] = make<HostConvolution<Pass::kForward>>;
  table["Conv2DBackpropInput"] = make<HostConvolution<Pass::kBackpropInput>>;
  table["Conv2DBackpropFilter"] = make<HostConvolution<Pass::kBackpropFilter>>;
}

}  // namespace dtf::gpu
