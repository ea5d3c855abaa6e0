// Pooling; the semantics are in common/graph/standard_image_ops.cc. Gradients are gathered by element of the image,
// from the windows over it in their order: no atomic additions, so the same bits each time.

#include "gpu/element_kernels.h"
#include "gpu/window.h"

namespace dtf::gpu {
namespace {

// Value type, given to the device.
struct Pooling {
  Pooling(const Operation& o, const TensorSpec& x, const TensorSpec& y)
      : window(poolingWindowOf(o)),
        height(x.dims[1]),
        width(x.dims[2]),
        channels(x.dims[3]),
        out_height(y.dims[1]),
        out_width(y.dims[2]),
        image_elements(x.elements()),
        out_elements(y.elements()) {}
  Window window;
  int64_t height, width, channels, out_height, out_width, image_elements, out_elements;
};

// Of a window along one axis, the elements [begin, end) that lie within the image.
struct Reach {
  DTF_HOST_DEVICE Reach(const Axis& axis, int64_t position, int64_t length)
      : first(position * axis.stride - axis.before),
        begin(first < 0 ? -first : 0),
        end(axis.size < length - first ? axis.size : length - first) {}
  int64_t first, begin, end;
};
// The positions [begin, end) of windows that have element `place` of the image.
struct Over {
  DTF_HOST_DEVICE Over(const Axis& axis, int64_t place, int64_t positions) {
    const int64_t last = place + axis.before;         // a window that begins there has it
    const int64_t earliest = last - (axis.size - 1);  // and so has one that ends there
    begin = earliest <= 0 ? 0 : (earliest + axis.stride - 1) / axis.stride;
    end = last / axis.stride + 1 < positions ? last / axis.stride + 1 : positions;
  }
  int64_t begin, end;
};

// Which pixel and channel an element belongs to.
struct Pixel {
  DTF_HOST_DEVICE Pixel(int64_t i, int64_t height, int64_t width, int64_t channels)
      : channel(i % channels),
        column(i / channels % width),
        row(i / channels / width % height),
        image(i / channels / width / height) {}
  int64_t channel, column, row, image;
};

template <class Number>
struct MaxPoolAt {
  Pooling p;
  const float* x;
  float* y;
  Number* argmax;
  DTF_HOST_DEVICE void operator()(int64_t i) const {
    const Pixel at(i, p.out_height, p.out_width, p.channels);
    const Reach rows(p.window.height, at.row, p.height);
    const Reach columns(p.window.width, at.column, p.width);
    const float* const image = x + at.image * p.height * p.width * p.channels + at.channel;
    float best = 0;
    int64_t number = -1;
    for (int64_t r = rows.begin; r < rows.end; ++r) {
      for (int64_t c = columns.begin; c < columns.end; ++c) {
        const float v = image[((rows.first + r) * p.width + columns.first + c) * p.channels];
        if (number >= 0 && !(v > best) && v == v) continue;  // a NaN counts as the largest
        best = v;
        number = r * p.window.width.size + c;
      }
    }
    y[i] = best;
    argmax[i] = static_cast<Number>(number);
  }
};

template <class Number>
struct MaxPoolGradAt {
  Pooling p;
  const float* dy;
  const Number* argmax;
  float* dx;
  DTF_HOST_DEVICE void operator()(int64_t i) const {
    const Pixel at(i, p.height, p.width, p.channels);
    const Over rows(p.window.height, at.row, p.out_height);
    const Over columns(p.window.width, at.column, p.out_width);
    float sum = 0;
    for (int64_t r = rows.begin; r < rows.end; ++r) {
      for (int64_t c = columns.begin; c < columns.end; ++c) {
        const int64_t out =
            ((at.image * p.out_height + r) * p.out_width + c) * p.channels + at.channel;
        const int64_t row = at.row + p.window.height.before - r * p.window.height.stride;
        const int64_t column = at.column + p.window.width.before - c * p.window.width.stride;
        const int64_t number = row * p.window.width.size + column;
        sum += static_cast<int64_t>(argmax[out]) == number ? dy[out] : 0.0f;
      }
    }
    dx[i] = sum;
  }
};

struct AvgPoolAt {
  Pooling p;
  const float* x;
  float* y;
  DTF_HOST_DEVICE void operator()(int64_t i) const {
    const Pixel at(i, p.out_height, p.out_width, p.channels);
    const Reach rows(p.window.height, at.row, p.height);
    const Reach columns(p.window.width, at.column, p.width);
    const float* const image = x + at.image * p.height * p.width * p.channels + at.channel;
    float sum = 0;
    for (int64_t r = rows.begin; r < rows.end; ++r)
      for (int64_t c = columns.begin; c < columns.end; ++c)
        sum += image[((rows.first + r) * p.width + columns.first + c) * p.channels];
    y[i] = sum / static_cast<float>((rows.end - rows.begin) * (columns.end - columns.begin));
  }
};

struct AvgPoolGradAt {
  Pooling p;
  const float* dy;
  float* dx;
  DTF_HOST_DEVICE void operator()(int64_t i) const {
    const Pixel at(i, p.height, p.width, p.channels);
    const Over rows(p.window.height, at.row, p.out_height);
    const Over columns(p.window.width, at.column, p.out_width);
    float sum = 0;
    for (int64_t r = rows.begin; r < rows.end; ++r) {
      const Reach of_rows(p.window.height, r, p.height);
      for (int64_t c = columns.begin; c < columns.end; ++c) {
        const Reach of_columns(p.window.width, c, p.width);
        const int64_t elements =
            (of_rows.end - of_rows.begin) * (of_columns.end - of_columns.begin);
        sum += dy[((at.image * p.out_height + r) * p.out_width + c) * p.channels + at.channel] /
               static_cast<float>(elements);
      }
    }
    dx[i] = sum;
  }
};

class AvgPoolKernel final : public Kernel {
 public:
  explicit AvgPoolKernel(const Operation& o) : p_(o, o.inputs[0], o.outputs[0]) {}
  void launch(Device& device, const Arguments& a) override {
    forElements(device, p_.out_elements, AvgPoolAt{p_, a.in(0), a.out(0)});
  }

 private:
  const Pooling p_;
};
class AvgPoolGradKernel final : public Kernel {
 public:
  explicit AvgPoolGradKernel(const Operation& o) : p_(o, o.outputs[0], o.inputs[0]) {}
  void launch(Device& device, const Arguments& a) override {
    forElements(device, p_.image_elements, AvgPoolGradAt{p_, a.in(0), a.out(0)});
  }

 private:
  const Pooling p_;
};

// The argmax is in bytes, in int32 where a window has more than 255 elements.
class MaxPoolKernel final : public Kernel {
 public:
  explicit MaxPoolKernel(const Operation& o)
      : p_(o, o.inputs[0], o.outputs[0]), bytes_(o.outputs[1].type == Type::kUInt8) {}
  void launch(Device& device, const Arguments& a) override {
    if (bytes_) {
      forElements(device, p_.out_elements,
                  MaxPoolAt<uint8_t>{p_, a.in(0), a.out(0), a.out<uint8_t>(1)});
    } else {
      forElements(device, p_.out_elements,
                  MaxPoolAt<int32_t>{p_, a.in(0), a.out(0), a.out<int32_t>(1)});
    }
  }

 private:
  const Pooling p_;
  const bool bytes_;
};
class MaxPoolGradKernel final : public Kernel {
 public:
  explicit MaxPoolGradKernel(const Operation& o)
      : p_(o, o.outputs[0], o.inputs[0]), bytes_(o.inputs[1].type == Type::kUInt8) {}
  void launch(Device& device, const Arguments& a) override {
    if (bytes_) {
      forElements(device, p_.image_elements,
                  MaxPoolGradAt<uint8_t>{p_, a.in(0), a.in<uint8_t>(1), a.out(0)});
    } else {
      forElements(device, p_.image_elements,
                  MaxPoolGradAt<int32_t>{p_, a.in(0), a.in<int32_t>(1), a.out(0)});
    }
  }

 private:
  const Pooling p_;
  const bool bytes_;
};

}  // namespace

void addPoolKernels(KernelTable& table) {
  table["MaxPool"] = make<MaxPoolKernel>;
  table["MaxPoolGrad"] = make<MaxPoolGradKernel>;
  table["AvgPool"] = make<AvgPoolKernel>;
  table["AvgPoolGrad"] = make<AvgPoolGradKernel>;
}

}  // namespace dtf::gpu
