#include "common/runtime/convolution.h"

#include <algorithm>
#include <cstring>

#include "common/base/check.h"
#include "common/runtime/matrix_product.h"

namespace dtf::runtime {
namespace {

using graph::WindowAxis;

// A block of gathered rows stays in the second cache. It has enough rows to make packing the filter
// worthwhile, unless that would exceed the share of the third cache.
constexpr int64_t kBlockFloats = 64 * 1024;
constexpr int64_t kBlockFloatsMax = 512 * 1024;
constexpr int64_t kRowsWanted = 192;
constexpr int64_t kRowsMin = 12;
constexpr int64_t kColumnsGrain = 32;  // whole tiles of a product

int64_t blockRows(const Convolution& c) {
  const int64_t rows =
      std::max(kBlockFloats / c.taps(), std::min(kRowsWanted, kBlockFloatsMax / c.taps()));
  return std::min(std::max(rows, kRowsMin), c.pixels());
}

size_t columnsBytes(const Convolution& c) {
  if (c.pointwise()) return 0;
  return static_cast<size_t>((blockRows(c) * c.taps() + 15) / 16 * 16) * sizeof(float);
}

// The part of a window's row inside the image: elements [begin, end).
struct Part {
  int64_t begin, end;
};
Part within(const WindowAxis& axis, int64_t first, int64_t length) {
  const auto reached = [&axis](int64_t distance) {  // elements until `distance` is reached
    return distance <= 0 ? 0 : (distance + axis.dilation - 1) / axis.dilation;
  };
  const int64_t end = std::min(axis.size, reached(length - first));
  return {std::min(end, reached(-first)), end};
}

// Calls f(row of the block, n, first image row, first image column) for the window of each of the
// pixels [first, first + rows).
template <class F>
void forEachPixel(const Convolution& c, int64_t first, int64_t rows, const F& f) {
  int64_t column = first % c.out_width;
  int64_t row = first / c.out_width % c.out_height;
  int64_t n = first / c.out_width / c.out_height;
  for (int64_t i = 0; i < rows; ++i) {
    f(i, n, row * c.window.height.stride - c.window.height.before,
      column * c.window.width.stride - c.window.width.before);
    if (++column < c.out_width) continue;
    column = 0;
    if (++row < c.out_height) continue;
    row = 0;
    ++n;
  }
}

// Calls f(offset in a gathered row, offset in the image or -1 for padding, floats) for every run of
// adjacent floats of one window.
template <class F>
void forEachRun(const Convolution& c, int64_t group, int64_t n, int64_t row0, int64_t column0,
                const F& f) {
  const WindowAxis &high = c.window.height, &wide = c.window.width;
  const int64_t channels = c.groupChannels();
  const Part rows = within(high, row0, c.height), columns = within(wide, column0, c.width);
  // Neighbours in the window are neighbours in the image.
  const bool adjacent = wide.dilation == 1 && c.groups == 1;
  const int64_t line = wide.size * channels;
  if (rows.begin > 0) f(0, -1, rows.begin * line);
  for (int64_t i = rows.begin; i < rows.end; ++i) {
    const int64_t from =
        ((n * c.height + row0 + i * high.dilation) * c.width + column0) * c.channels +
        group * channels;
    const int64_t to = i * line;
    if (columns.begin > 0) f(to, -1, columns.begin * channels);
    if (adjacent) {
      f(to + columns.begin * channels, from + columns.begin * channels,
        (columns.end - columns.begin) * channels);
    } else {
      for (int64_t j = columns.begin; j < columns.end; ++j) {
        f(to + j * channels, from + j * wide.dilation * c.channels, channels);
      }
    }
    if (columns.end < wide.size) {
      f(to + columns.end * channels, -1, (wide.size - columns.end) * channels);
    }
  }
  if (rows.end < high.size) f(rows.end * line, -1, (high.size - rows.end) * line);
}

void gather(const Convolution& c, int64_t group, const float* x, int64_t first, int64_t rows,
            float* columns) {
  forEachPixel(c, first, rows, [&](int64_t i, int64_t n, int64_t row0, int64_t column0) {
    float* const to = columns + i * c.taps();
    forEachRun(c, group, n, row0, column0, [&](int64_t at, int64_t from, int64_t floats) {
      if (from < 0) {
        std::fill_n(to + at, floats, 0.0f);
      } else {
        std::memcpy(to + at, x + from, static_cast<size_t>(floats) * sizeof(float));
      }
    });
  });
}

// The reverse: adds each gathered element to its source.
void scatterAdd(const Convolution& c, int64_t group, const float* columns, int64_t first,
                int64_t rows, float* dx) {
  forEachPixel(c, first, rows, [&](int64_t i, int64_t n, int64_t row0, int64_t column0) {
    const float* const from = columns + i * c.taps();
    forEachRun(c, group, n, row0, column0, [&](int64_t at, int64_t to, int64_t floats) {
      if (to < 0) return;
      for (int64_t k = 0; k < floats; ++k) dx[to + k] += from[at + k];
    });
  });
}

// A part of a convolution, with the workspace of its thread.
struct Share {
  int64_t group, groups_end;
  int64_t pixel, pixels_end;
  std::byte* workspace;
};

// Gathered rows, or all pixels of an image that needs no gathering.
struct RowBlock {
  int64_t rows;
  int64_t columns_stride;  // distance of two rows
  float* columns;          // the rows
  float* workspace;        // workspace of the product
};

// Calls f(group, first pixel, block) for each block; if the image needs no gathering, once for all
// pixels.
template <class F>
void forEachBlock(const Convolution& c, const Share& part, const F& f) {
  DTF_CHECK(part.workspace != nullptr && reinterpret_cast<uintptr_t>(part.workspace) % 64 == 0);
  const int64_t rows = c.pointwise() ? c.pixels() : blockRows(c);
  RowBlock block = {};
  block.columns_stride = c.pointwise() ? c.channels : c.taps();
  block.columns = reinterpret_cast<float*>(part.workspace);
  block.workspace = reinterpret_cast<float*>(part.workspace + columnsBytes(c));
  for (int64_t group = part.group; group < part.groups_end; ++group) {
    for (int64_t first = part.pixel; first < part.pixels_end; first += rows) {
      block.rows = std::min(rows, part.pixels_end - first);
      f(group, first, block);
    }
  }
}

MatrixProduct forwardProduct(const Convolution& c, int64_t rows) {
  MatrixProduct p;
  p.m = rows, p.k = c.taps(), p.n = c.groupOutChannels();
  p.b_stride = p.c_stride = c.out_channels;
  return p;
}

MatrixProduct inputProduct(const Convolution& c, int64_t rows) {
  MatrixProduct p;
  p.m = rows, p.k = c.groupOutChannels(), p.n = c.taps();
  p.transpose_b = true;
  p.a_stride = p.b_stride = c.out_channels;
  return p;
}

MatrixProduct filterProduct(const Convolution& c, int64_t rows) {
  MatrixProduct p;
  p.m = c.taps(), p.k = rows, p.n = c.groupOutChannels();
  p.transpose_a = true;
  p.b_stride = p.c_stride = c.out_channels;
  return p;
}

}  // namespace

Convolution Convolution::of(const Shape& x, const Shape& filter, const Shape& y,
                            const graph::Attributes& attributes) {
  DTF_CHECK(x.rank() == 4 && filter.rank() == 4 && y.rank() == 4);
  Convolution c;
  c.batch = x.dim(0), c.height = x.dim(1), c.width = x.dim(2), c.channels = x.dim(3);
  c.out_height = y.dim(1), c.out_width = y.dim(2), c.out_channels = y.dim(3);
  c.groups = std::get<int64_t>(attributes.find("groups")->second);
  c.window = graph::convolutionWindow(attributes, filter);
  DTF_CHECK(y.dim(0) == c.batch && filter.dim(3) == c.out_channels);
  DTF_CHECK(c.groups >= 1 && c.channels == filter.dim(2) * c.groups);
  DTF_CHECK(c.out_channels % c.groups == 0);
  DTF_CHECK(c.window.height.positions(c.height) == c.out_height);
  DTF_CHECK(c.window.width.positions(c.width) == c.out_width);
  return c;
}

bool Convolution::pointwise() const {
  const auto plain = [](const WindowAxis& axis) {
    return axis.size == 1 && axis.stride == 1 && axis.before == 0 && axis.after == 0;
  };
  return plain(window.height) && plain(window.width);
}

namespace {

// The workspace of one thread.
size_t workspaceOfOne(const Processor& cpu, const Convolution& c) {
  const int64_t rows = c.pointwise() ? c.pixels() : blockRows(c);
  const size_t product = std::max({matrixProductWorkspaceBytes(cpu, forwardProduct(c, rows)),
                                   matrixProductWorkspaceBytes(cpu, inputProduct(c, rows)),
                                   matrixProductWorkspaceBytes(cpu, filterProduct(c, rows))});
  return columnsBytes(c) + product;
}

// Calls f(share) for parts of all pixels, in multiples of `grain`.
template <class F>
void forPixels(const Processor& cpu, const Convolution& c, int64_t grain, std::byte* workspace,
               const F& f) {
  const PerThread workspaces(cpu, workspaceOfOne(cpu.alone(), c));
  const int64_t work = c.taps() * c.out_channels * kMultiplyAddWork;
  cpu.forRanges(c.pixels(), work, grain, Processor::kPartsEach,
                [&](int64_t begin, int64_t end, int thread) {
                  f(Share{0, c.groups, begin, end, workspaces.of(workspace, thread)});
                });
}

// Restricts the product of a group's filter with all pixels to some output channels.
MatrixProduct someColumns(MatrixProduct p, int64_t begin, int64_t end) {
  p.b += begin;
  p.c += begin;
  p.n = end - begin;
  return p;
}

}  // namespace

size_t convolutionWorkspaceBytes(const Processor& cpu, const Convolution& c) {
  return c.empty() ? 0 : PerThread(cpu, workspaceOfOne(cpu.alone(), c)).bytes();
}

void convolve(const Processor& cpu, const Convolution& c, const float* x, const float* filter,
              float* y, std::byte* workspace) {
  if (c.empty()) {
    std::fill_n(y, c.outElements(), 0.0f);
    return;
  }
  forPixels(cpu, c, kRowsMin, workspace, [&](const Share& share) {
    forEachBlock(c, share, [&](int64_t group, int64_t first, const RowBlock& block) {
      MatrixProduct p = forwardProduct(c, block.rows);
      p.a = c.pointwise() ? x + first * c.channels + group * c.groupChannels() : block.columns;
      p.a_stride = block.columns_stride;
      p.b = filter + group * p.n;
      p.c = y + first * c.out_channels + group * p.n;
      p.workspace = block.workspace;
      if (!c.pointwise()) gather(c, group, x, first, block.rows, block.columns);
      matrixProduct(cpu.alone(), p);
    });
  });
}

void convolveBackpropInput(const Processor& cpu, const Convolution& c, const float* filter,
                           const float* dy, float* dx, std::byte* workspace) {
  if (c.empty()) {
    std::fill_n(dx, c.imageElements(), 0.0f);
    return;
  }
  const bool in_place = c.pointwise();
  const int64_t image = c.out_height * c.out_width;  // the windows of an image overlap
  forPixels(cpu, c, in_place ? kRowsMin : image, workspace, [&](const Share& share) {
    if (!in_place) {
      const int64_t floats = c.height * c.width * c.channels;
      std::fill(dx + share.pixel / image * floats, dx + share.pixels_end / image * floats, 0.0f);
    }
    forEachBlock(c, share, [&](int64_t group, int64_t first, const RowBlock& block) {
      MatrixProduct p = inputProduct(c, block.rows);
      p.a = dy + first * c.out_channels + group * p.k;
      p.b = filter + group * p.k;
      p.c = in_place ? dx + first * c.channels + group * c.groupChannels() : block.columns;
      p.c_stride = block.columns_stride;
      p.workspace = block.workspace;
      matrixProduct(cpu.alone(), p);
      if (!in_place) scatterAdd(c, group, block.columns, first, block.rows, dx);
    });
  });
}

// The pixels are summed in one order, so the work is split by groups, or by output channels, and
// each part gathers the images again.
void convolveBackpropFilter(const Processor& cpu, const Convolution& c, const float* x,
                            const float* dy, float* dfilter, std::byte* workspace) {
  if (c.empty()) {
    std::fill_n(dfilter, c.filterElements(), 0.0f);
    return;
  }
  const PerThread workspaces(cpu, workspaceOfOne(cpu.alone(), c));
  const bool by_groups = c.groups > 1;
  const int64_t units = by_groups ? c.groups : c.out_channels;
  const int64_t unit_work =
      c.taps() * c.pixels() * (by_groups ? c.groupOutChannels() : 1) * kMultiplyAddWork;
  const auto some = [&](int64_t begin, int64_t end, int thread) {
    const Share share = {by_groups ? begin : 0, by_groups ? end : 1, 0, c.pixels(),
                         workspaces.of(workspace, thread)};
    forEachBlock(c, share, [&](int64_t group, int64_t first, const RowBlock& block) {
      MatrixProduct p = filterProduct(c, block.rows);
      p.a = c.pointwise() ? x + group * c.groupChannels() : block.columns;
      p.a_stride = block.columns_stride;
      p.b = dy + first * c.out_channels + group * p.n;
      p.c = dfilter + group * p.n;
      p.accumulate = first > 0;
      p.workspace = block.workspace;
      if (!c.pointwise()) gather(c, group, x, first, block.rows, block.columns);
      matrixProduct(cpu.alone(), by_groups ? p : someColumns(p, begin, end));
    });
  };
  cpu.forRanges(units, unit_work, by_groups ? 1 : kColumnsGrain, 1, some);
}

}  // namespace dtf::runtime
