// The loops of pooling.h, compiled once per instruction set.

#include "common/runtime/pooling_isa.h"
#include "common/runtime/vector.h"

namespace dtf::runtime::DTF_ISA {
namespace {

using Ints = IntsOf<Floats>;

// The elements of one window that lie within the image, and what belongs to it.
struct Place {
  int64_t row0, row1, column0, column1;  // [row0, row1) x [column0, column1) of the window
  int64_t image;  // offset of the window's element (0, 0) in the image, which may be outside of it
  int64_t out;    // offset of the output pixel
};

// The range of a window's elements [begin, end) that lie within `length`, when it starts at `first`.
DTF_INLINE int64_t beginWithin(int64_t first) {
  return first < 0 ? -first : 0;
}
DTF_INLINE int64_t endWithin(int64_t first, int64_t size, int64_t length) {
  return least(size, length - first);
}

// f(place) for every output pixel, in order.
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

// f(offset in the image, number in the window) for every element of the place.
template <class F>
DTF_INLINE void forEachElement(const Pooling& p, const Place& at, const F& f) {
  for (int64_t i = at.row0; i < at.row1; ++i) {
    for (int64_t j = at.column0; j < at.column1; ++j) {
      f(at.image + (i * p.width + j) * p.channels, static_cast<int32_t>(i * p.window_width + j));
    }
  }
}

// f(first channel, how many) for every vector of channels.
template <class F>
DTF_INLINE void forEachVector(int64_t channels, const F& f) {
  for (int64_t c = 0; c < channels; c += kLanes) f(c, least(kLanes, channels - c));
}

template <class T>
struct IndexVector {
  typedef T Type __attribute__((vector_size(kLanes * sizeof(T))));
};

template <class T>
DTF_INLINE void storeIndices(T* to, Ints v, int64_t n) {
  const auto narrow = __builtin_convertvector(v, typename IndexVector<T>::Type);
  if (n == kLanes) {
    __builtin_memcpy(to, &narrow, sizeof narrow);
  } else {
    for (int64_t i = 0; i < n; ++i) to[i] = narrow[i];
  }
}

template <class T>
DTF_INLINE Ints loadIndices(const T* from, int64_t n) {
  typename IndexVector<T>::Type narrow = {};
  if (n == kLanes) {
    __builtin_memcpy(&narrow, from, sizeof narrow);
  } else {
    for (int64_t i = 0; i < n; ++i) narrow[i] = from[i];
  }
  return __builtin_convertvector(narrow, Ints);
}

// A NaN counts as the largest, so that a broken training shows in its loss.
template <class T>
void maxPool(const Pooling& p, const float* x, float* y, T* argmax) {
  forEachPlace(p, [&](const Place& at) {
    forEachVector(p.channels, [&](int64_t c, int64_t n) {
      const int64_t first = at.image + (at.row0 * p.width + at.column0) * p.channels;
      Floats best = loadSome(x + first + c, n);
      Ints number = static_cast<int32_t>(at.row0 * p.window_width + at.column0) - Ints{};
      forEachElement(p, at, [&](int64_t from, int32_t element) {
        const Floats v = loadSome(x + from + c, n);
        const Ints larger = (v > best) | (v != v);
        best = larger ? v : best;
        number = larger ? element - Ints{} : number;
      });
      storeSome(y + at.out + c, best, n);
      storeIndices(argmax + at.out + c, number, n);
    });
  });
}

DTF_INLINE void clear(float* dx, int64_t n) {
  __builtin_memset(dx, 0, static_cast<size_t>(n) * sizeof(float));
}

template <class T>
void maxPoolGrad(const Pooling& p, const float* dy, const T* argmax, float* dx) {
  clear(dx, p.batch * p.height * p.width * p.channels);
  forEachPlace(p, [&](const Place& at) {
    forEachVector(p.channels, [&](int64_t c, int64_t n) {
      const Floats d = loadSome(dy + at.out + c, n);
      const Ints number = loadIndices(argmax + at.out + c, n);
      forEachElement(p, at, [&](int64_t to, int32_t element) {
        const Floats here = number == element ? d : Floats{};
        storeSome(dx + to + c, loadSome(dx + to + c, n) + here, n);
      });
    });
  });
}

DTF_INLINE float elements(const Place& at) {
  return static_cast<float>((at.row1 - at.row0) * (at.column1 - at.column0));
}

void avgPool(const Pooling& p, const float* x, float* y) {
  forEachPlace(p, [&](const Place& at) {
    const float count = elements(at);
    forEachVector(p.channels, [&](int64_t c, int64_t n) {
      Floats sum = {};
      forEachElement(p, at, [&](int64_t from, int32_t) { sum += loadSome(x + from + c, n); });
      storeSome(y + at.out + c, sum / count, n);
    });
  });
}

void avgPoolGrad(const Pooling& p, const float* dy, float* dx) {
  clear(dx, p.batch * p.height * p.width * p.channels);
  forEachPlace(p, [&](const Place& at) {
    const float count = elements(at);
    forEachVector(p.channels, [&](int64_t c, int64_t n) {
      const Floats d = loadSome(dy + at.out + c, n) / count;
      forEachElement(p, at, [&](int64_t to, int32_t) {
        storeSome(dx + to + c, loadSome(dx + to + c, n) + d, n);
      });
    });
  });
}

}  // namespace

const PoolingLoops kPoolingLoops = {
    .maxPool = maxPool<uint8_t>,
    .maxPoolWide = maxPool<int32_t>,
    .maxPoolGrad = maxPoolGrad<uint8_t>,
    .maxPoolGradWide = maxPoolGrad<int32_t>,
    .avgPool = avgPool,
    .avgPoolGrad = avgPoolGrad,
};

}  // namespace dtf::runtime::DTF_ISA
