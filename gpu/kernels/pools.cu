// Pooling; the semantics are in common/graph/standard_image_ops.cc. Gradients are gathered by
// element of the image, from the windows over it in order: without atomic additions, and so with
// the same bits each time. Images are float32 or bfloat16; a thread handles a pack of N channels.

#include "gpu/channel_kernels.h"
#include "gpu/window.h"

namespace dtf::gpu {
namespace {

// Value type, passed to the device.
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

// The elements [begin, end) of a window along one axis that are within the image.
struct Reach {
  DTF_HOST_DEVICE Reach(const Axis& axis, int64_t position, int64_t length)
      : first(position * axis.stride - axis.before),
        begin(first < 0 ? -first : 0),
        end(axis.size < length - first ? axis.size : length - first) {}
  int64_t first, begin, end;
};
// The positions [begin, end) of windows that contain element `place` of the image.
struct Over {
  DTF_HOST_DEVICE Over(const Axis& axis, int64_t place, int64_t positions) {
    const int64_t last = place + axis.before;         // a window that begins there contains it
    const int64_t earliest = last - (axis.size - 1);  // and so does one that ends there
    begin = earliest <= 0 ? 0 : (earliest + axis.stride - 1) / axis.stride;
    end = last / axis.stride + 1 < positions ? last / axis.stride + 1 : positions;
  }
  int64_t begin, end;
};

// The pixel and the pack of channels of a pack's number.
struct Pixel {
  DTF_HOST_DEVICE Pixel(int64_t i, int64_t height, int64_t width, int64_t packs) {
    const int64_t columns = quotientOf(i, packs), rows = quotientOf(columns, width);
    pack = i - columns * packs;
    column = columns - rows * width;
    image = quotientOf(rows, height);
    row = rows - image * height;
  }
  int64_t pack, column, row, image;
};

template <class T, int N, class Number>
struct MaxPoolAt {
  Pooling p;
  const T* x;
  T* y;
  Number* argmax;
  DTF_HOST_DEVICE void operator()(int64_t i) const {
    const int64_t packs = p.channels / N;
    const Pixel at(i, p.out_height, p.out_width, packs);
    const Reach rows(p.window.height, at.row, p.height);
    const Reach columns(p.window.width, at.column, p.width);
    const int64_t image = at.image * p.height * p.width;
    Pack<T, N> best = {};
    Pack<Number, N> numbers;
    for (int c = 0; c < N; ++c) numbers.at[c] = static_cast<Number>(-1);
    bool first = true;
    for (int64_t r = rows.begin; r < rows.end; ++r) {
      for (int64_t c = columns.begin; c < columns.end; ++c) {
        const int64_t pixel = image + (rows.first + r) * p.width + columns.first + c;
        const Pack<T, N> from = load<N>(x, pixel * packs + at.pack);
        const auto number = static_cast<Number>(r * p.window.width.size + c);
        for (int k = 0; k < N; ++k) {
          const float v = from.at[k];
          if (!first && !(v > best.at[k]) && v == v) continue;  // a NaN counts as the largest
          best.at[k] = from.at[k];
          numbers.at[k] = number;
        }
        first = false;
      }
    }
    store(y, i, best);
    store(argmax, i, numbers);
  }
};

template <class T, int N, class Number>
struct MaxPoolGradAt {
  Pooling p;
  const T* dy;
  const Number* argmax;
  T* dx;
  DTF_HOST_DEVICE void operator()(int64_t i) const {
    const int64_t packs = p.channels / N;
    const Pixel at(i, p.height, p.width, packs);
    const Over rows(p.window.height, at.row, p.out_height);
    const Over columns(p.window.width, at.column, p.out_width);
    Pack<float, N> sums = {};
    for (int64_t r = rows.begin; r < rows.end; ++r) {
      for (int64_t c = columns.begin; c < columns.end; ++c) {
        const int64_t out = ((at.image * p.out_height + r) * p.out_width + c) * packs + at.pack;
        const int64_t row = at.row + p.window.height.before - r * p.window.height.stride;
        const int64_t column = at.column + p.window.width.before - c * p.window.width.stride;
        const int64_t number = row * p.window.width.size + column;
        const Pack<T, N> gradient = load<N>(dy, out);
        const Pack<Number, N> numbers = load<N>(argmax, out);
        for (int k = 0; k < N; ++k)
          if (static_cast<int64_t>(numbers.at[k]) == number) sums.at[k] += gradient.at[k];
      }
    }
    storeAs(dx, i, sums);
  }

  static DTF_HOST_DEVICE void storeAs(T* to, int64_t i, const Pack<float, N>& values) {
    Pack<T, N> made;
    for (int k = 0; k < N; ++k) made.at[k] = values.at[k];
    store(to, i, made);
  }
};

template <class T, int N>
struct AvgPoolAt {
  Pooling p;
  const T* x;
  T* y;
  DTF_HOST_DEVICE void operator()(int64_t i) const {
    const int64_t packs = p.channels / N;
    const Pixel at(i, p.out_height, p.out_width, packs);
    const Reach rows(p.window.height, at.row, p.height);
    const Reach columns(p.window.width, at.column, p.width);
    const int64_t image = at.image * p.height * p.width;
    Pack<float, N> sums = {};
    for (int64_t r = rows.begin; r < rows.end; ++r)
      for (int64_t c = columns.begin; c < columns.end; ++c) {
        const int64_t pixel = image + (rows.first + r) * p.width + columns.first + c;
        const Pack<T, N> from = load<N>(x, pixel * packs + at.pack);
        for (int k = 0; k < N; ++k) sums.at[k] += from.at[k];
      }
    const auto elements =
        static_cast<float>((rows.end - rows.begin) * (columns.end - columns.begin));
    for (int k = 0; k < N; ++k) sums.at[k] /= elements;
    MaxPoolGradAt<T, N, uint8_t>::storeAs(y, i, sums);
  }
};

template <class T, int N>
struct AvgPoolGradAt {
  Pooling p;
  const T* dy;
  T* dx;
  DTF_HOST_DEVICE void operator()(int64_t i) const {
    const int64_t packs = p.channels / N;
    const Pixel at(i, p.height, p.width, packs);
    const Over rows(p.window.height, at.row, p.out_height);
    const Over columns(p.window.width, at.column, p.out_width);
    Pack<float, N> sums = {};
    for (int64_t r = rows.begin; r < rows.end; ++r) {
      const Reach of_rows(p.window.height, r, p.height);
      for (int64_t c = columns.begin; c < columns.end; ++c) {
        const Reach of_columns(p.window.width, c, p.width);
        const auto elements =
            static_cast<float>((of_rows.end - of_rows.begin) * (of_columns.end - of_columns.begin));
        const Pack<T, N> gradient =
            load<N>(dy, ((at.image * p.out_height + r) * p.out_width + c) * packs + at.pack);
        for (int k = 0; k < N; ++k) sums.at[k] += gradient.at[k] / elements;
      }
    }
    MaxPoolGradAt<T, N, uint8_t>::storeAs(dx, i, sums);
  }
};

template <class T, int N>
class AvgPoolKernel final : public Kernel {
 public:
  explicit AvgPoolKernel(const Operation& o) : p_(o, o.inputs[0], o.outputs[0]) {}
  void launch(Device& device, const Arguments& a) override {
    forElements(device, p_.out_elements / N, AvgPoolAt<T, N>{p_, a.in<T>(0), a.out<T>(0)});
  }

 private:
  const Pooling p_;
};
template <class T, int N>
class AvgPoolGradKernel final : public Kernel {
 public:
  explicit AvgPoolGradKernel(const Operation& o) : p_(o, o.outputs[0], o.inputs[0]) {}
  void launch(Device& device, const Arguments& a) override {
    forElements(device, p_.image_elements / N, AvgPoolGradAt<T, N>{p_, a.in<T>(0), a.out<T>(0)});
  }

 private:
  const Pooling p_;
};

// The argmax is in bytes, or in int32 if a window has more than 255 elements.
template <class T, int N>
class MaxPoolKernel final : public Kernel {
 public:
  explicit MaxPoolKernel(const Operation& o)
      : p_(o, o.inputs[0], o.outputs[0]), bytes_(o.outputs[1].type == Type::kUInt8) {}
  void launch(Device& device, const Arguments& a) override {
    bytes_ ? pool<uint8_t>(device, a) : pool<int32_t>(device, a);
  }

 private:
  template <class Number>
  void pool(Device& device, const Arguments& a) const {
    forElements(device, p_.out_elements / N,
                MaxPoolAt<T, N, Number>{p_, a.in<T>(0), a.out<T>(0), a.out<Number>(1)});
  }

  const Pooling p_;
  const bool bytes_;
};
template <class T, int N>
class MaxPoolGradKernel final : public Kernel {
 public:
  explicit MaxPoolGradKernel(const Operation& o)
      : p_(o, o.outputs[0], o.inputs[0]), bytes_(o.inputs[1].type == Type::kUInt8) {}
  void launch(Device& device, const Arguments& a) override {
    bytes_ ? pool<uint8_t>(device, a) : pool<int32_t>(device, a);
  }

 private:
  template <class Number>
  void pool(Device& device, const Arguments& a) const {
    forElements(device, p_.image_elements / N,
                MaxPoolGradAt<T, N, Number>{p_, a.in<T>(0), a.in<Number>(1), a.out<T>(0)});
  }

  const Pooling p_;
  const bool bytes_;
};

}  // namespace

void addPoolKernels(KernelTable& table) {
  table["MaxPool"] = byChannelsOfInput<MaxPoolKernel>;
  table["MaxPoolGrad"] = byChannelsOfInput<MaxPoolGradKernel>;
  table["AvgPool"] = byChannelsOfInput<AvgPoolKernel>;
  table["AvgPoolGrad"] = byChannelsOfInput<AvgPoolGradKernel>;
}

}  // namespace dtf::gpu
