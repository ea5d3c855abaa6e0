// The loops of pooling.h, compiled once per instruction set.

#include "common/runtime/pooling_isa.h"
#include "common/runtime/vector.h"

namespace dtf::runtime::DTF_ISA {
namespace {

using Ints = IntsOf<Floats>;

// The elements of one window inside the image, with their offsets.
struct Place {
  int64_t row0, row1, column0, column1;  // [row0, row1) x [column0, column1) of the window
  int64_t image;  // offset of the window's element (0, 0) in the image, which may be outside of it
  int64_t out;    // offset of the output pixel
};

// The range [begin, end) of a window's elements within `length`, for a window that starts at
// `first`.
DTF_INLINE int64_t beginWithin(int64_t first) {
  return first < 0 ? -first : 0;
}
DTF_INLINE int64_t endWithin(int64_t first, int64_t size, int64_t length) {
  return least(size, length - first);
}

// Calls f(place) for every output pixel, in order.
template <class F>
DTF_INLINE void forEachPlace(const Pooling& p, const F& f) {
  Place at = {};
  for (int64_t n = 0; n < p.batch; ++n) {
    for (int64_t i = 0; i < p.out_height; ++i) {
      const int64_t row = i * p.stride_height - p.padding_top;
      at.row0 = beginWithin(row), at.row1 = endWithin(row, p.window_height, p.height);
      for (int64_t j = 0; j < p.out_width; ++j, at.out += p.channels) {
        const int64_t column = j * p.stride_width - p.padding_left;
        at.column0 = beginWithin(column);
        at.column1 = endWithin(column, p.window_width, p.width);
        at.image = ((n * p.height + row) * p.width + column) * p.channels;
        f(at);
      }
    }
  }
}

// Calls f(offset in the image, number in the window) for every element of the place.
template <class F>
DTF_INLINE void forEachElement(const Pooling& p, const Place& at, const F& f) {
  const int64_t line = p.width * p.channels;
  const auto number = static_cast<int32_t>(at.row0 * p.window_width + at.column0);
  const int64_t first = at.image + at.row0 * line + at.column0 * p.channels;
  const int64_t rows = at.row1 - at.row0, columns = at.column1 - at.column0;
  const auto wide = static_cast<int32_t>(p.window_width);
  if (rows == 2 && columns == 2) {  // the most frequent window, without loops
    f(first, number);
    f(first + p.channels, number + 1);
    f(first + line, number + wide);
    f(first + line + p.channels, number + wide + 1);
    return;
  }
  for (int32_t i = 0; i < rows; ++i) {
    for (int32_t j = 0; j < columns; ++j) {
      f(first + i * line + j * p.channels, number + i * wide + j);
    }
  }
}

// A whole vector of channels, or the last ones that don't fill it.
struct Whole {
  DTF_INLINE Floats load(const float* from) const { return DTF_ISA::load(from); }
  DTF_INLINE void store(float* to, Floats v) const { DTF_ISA::store(to, v); }
};
struct Part {
  int64_t n;
  DTF_INLINE Floats load(const float* from) const { return loadPartial(from, n); }
  DTF_INLINE void store(float* to, Floats v) const { storePartial(to, v, n); }
};

// Calls f(first channel, Whole or Part) for every vector of channels.
template <class F>
DTF_INLINE void forEachVector(int64_t channels, const F& f) {
  int64_t c = 0;
  for (; c + kLanes <= channels; c += kLanes) f(c, Whole{});
  if (c < channels) f(c, Part{channels - c});
}

template <class T>
struct IndexVector {
  typedef T Type __attribute__((vector_size(kLanes * sizeof(T))));
};

template <class T>
DTF_INLINE void storeIndices(T* to, Ints v, Whole) {
  const auto narrow = __builtin_convertvector(v, typename IndexVector<T>::Type);
  __builtin_memcpy(to, &narrow, sizeof narrow);
}
template <class T>
DTF_INLINE void storeIndices(T* to, Ints v, Part part) {
  for (int64_t i = 0; i < part.n; ++i) to[i] = static_cast<T>(v[i]);
}

template <class T>
DTF_INLINE Ints loadIndices(const T* from, Whole) {
  typename IndexVector<T>::Type narrow;
  __builtin_memcpy(&narrow, from, sizeof narrow);
  return __builtin_convertvector(narrow, Ints);
}
template <class T>
DTF_INLINE Ints loadIndices(const T* from, Part part) {
  Ints wide = {};
  for (int64_t i = 0; i < part.n; ++i) wide[i] = from[i];
  return wide;
}

// Computes the maximum of `value(offset in the image, lanes)`. A NaN counts as the largest, so that
// a broken training shows in its loss. `finish(best, number)` may change the stored values.
template <class T, class Value, class Finish>
DTF_INLINE void maxPoolOf(const Pooling& p, const Value& value, const Finish& finish, float* y,
                          T* argmax) {
  forEachPlace(p, [&](const Place& at) {
    forEachVector(p.channels, [&](int64_t c, auto lanes) {
      const int64_t first = at.image + (at.row0 * p.width + at.column0) * p.channels;
      const auto value_at = value(c, lanes);
      Floats best = value_at(first);
      Ints number = static_cast<int32_t>(at.row0 * p.window_width + at.column0) - Ints{};
      forEachElement(p, at, [&](int64_t from, int32_t element) {
        const Floats v = value_at(from);
        const Ints larger = (v > best) | (v != v);  // NOLINT(misc-redundant-expression): a NaN is
        best = larger ? v : best;
        number = larger ? element - Ints{} : number;
      });
      finish(best, number);
      lanes.store(y + at.out + c, best);
      storeIndices(argmax + at.out + c, number, lanes);
    });
  });
}

template <class T>
void maxPool(const Pooling& given, const float* x, float* y, T* argmax) {
  const Pooling p = given;  // stores can't change the copy
  const auto value = [x](int64_t c, auto lanes) {
    return [from = x + c, lanes](int64_t offset) { return lanes.load(from + offset); };
  };
  maxPoolOf(
      p, value, [](Floats&, Ints&) {}, y, argmax);
}

constexpr int32_t kClosed = 255;

// Adds the bias before it compares, so that equal elements are the same as in separate steps. A
// maximum that isn't positive becomes 0, as its whole window would.
void biasReluMaxPool(const Pooling& given, const float* x, const float* bias, float* y,
                     uint8_t* argmax) {
  const Pooling p = given;
  const auto value = [x, bias](int64_t c, auto lanes) {
    return [from = x + c, b = lanes.load(bias + c), lanes](int64_t offset) {
      return lanes.load(from + offset) + b;
    };
  };
  const auto finish = [](Floats& best, Ints& number) {
    number = best <= 0.0f ? kClosed - Ints{} : number;
    best = best < 0.0f ? Floats{} : best;
  };
  maxPoolOf(p, value, finish, y, argmax);
}

DTF_INLINE void clear(const Pooling& p, float* dx) {
  const int64_t n = p.batch * p.height * p.width * p.channels;
  __builtin_memset(dx, 0, static_cast<size_t>(n) * sizeof(float));
}

// Returns whether every element of the image belongs to exactly one window: nothing is summed then.
DTF_INLINE bool tiles(const Pooling& p) {
  return p.padding_top == 0 && p.padding_left == 0 && p.stride_height == p.window_height &&
         p.stride_width == p.window_width && p.out_height * p.window_height == p.height &&
         p.out_width * p.window_width == p.width;
}

// Adds to dx at every element of each window: `make_part(lanes, c, at)` makes a function of the
// element's number.
template <class MakePart>
DTF_INLINE void spread(const Pooling& p, float* dx, const MakePart& make_part) {
  const bool once = tiles(p);
  if (!once) clear(p, dx);
  forEachPlace(p, [&](const Place& at) {
    forEachVector(p.channels, [&](int64_t c, auto lanes) {
      const auto part = make_part(lanes, c, at);
      forEachElement(p, at, [&](int64_t to, int32_t element) {
        float* const target = dx + to + c;
        lanes.store(target, once ? part(element) : lanes.load(target) + part(element));
      });
    });
  });
}

template <class T>
void maxPoolGrad(const Pooling& given, const float* dy, const T* argmax, float* dx) {
  const Pooling p = given;
  spread(p, dx, [&](auto lanes, int64_t c, const Place& at) {
    const Floats d = lanes.load(dy + at.out + c);
    const Ints number = loadIndices(argmax + at.out + c, lanes);
    return [d, number](int32_t element) { return number == element ? d : Floats{}; };
  });
}

void openGradSum(const Pooling& given, int64_t begin, int64_t end, const float* dy,
                 const uint8_t* argmax, float* dbias) {
  const Pooling p = given;
  const int64_t pixels = p.batch * p.out_height * p.out_width;
  forEachVector(end - begin, [&](int64_t some, auto lanes) {
    const int64_t c = begin + some;
    Floats sum = {};
    for (int64_t i = c; i < pixels * p.channels; i += p.channels) {
      const Floats d = lanes.load(dy + i);
      sum += loadIndices(argmax + i, lanes) == kClosed ? Floats{} : d;
    }
    lanes.store(dbias + c, sum);
  });
}

DTF_INLINE float elements(const Place& at) {
  return static_cast<float>((at.row1 - at.row0) * (at.column1 - at.column0));
}

void avgPool(const Pooling& given, const float* x, float* y) {
  const Pooling p = given;
  forEachPlace(p, [&](const Place& at) {
    const float count = elements(at);
    forEachVector(p.channels, [&](int64_t c, auto lanes) {
      Floats sum = {};
      forEachElement(p, at, [&](int64_t from, int32_t) { sum += lanes.load(x + from + c); });
      lanes.store(y + at.out + c, sum / count);
    });
  });
}

void avgPoolGrad(const Pooling& given, const float* dy, float* dx) {
  const Pooling p = given;
  spread(p, dx, [&](auto lanes, int64_t c, const Place& at) {
    const Floats d = lanes.load(dy + at.out + c) / elements(at);
    return [d](int32_t) { return d; };
  });
}

}  // namespace

const PoolingLoops kPoolingLoops = {
    .maxPool = maxPool<uint8_t>,
    .maxPoolWide = maxPool<int32_t>,
    .maxPoolGrad = maxPoolGrad<uint8_t>,
    .maxPoolGradWide = maxPoolGrad<int32_t>,
    .biasReluMaxPool = biasReluMaxPool,
    .openGradSum = openGradSum,
    .avgPool = avgPool,
    .avgPoolGrad = avgPoolGrad,
};

}  // namespace dtf::runtime::DTF_ISA
