// Transposes matrices by tiles, which are read and written in whole lines.

#include "gpu/transpose.h"

#include "gpu/launch.h"

namespace dtf::gpu {
namespace {

#if defined(__CUDACC__)

constexpr int kTile = 32, kTileRows = 8;

template <class From, class To>
__global__ void transposeKernel(const From* from, To* to, int64_t rows, int64_t columns) {
  __shared__ float tile[kTile][kTile + 1];  // padded so that a column uses all banks
  const int64_t tiles_wide = (columns + kTile - 1) / kTile;
  const int64_t row0 = blockIdx.x / tiles_wide * kTile, column0 = blockIdx.x % tiles_wide * kTile;
  for (int64_t r = threadIdx.y; r < kTile && row0 + r < rows; r += kTileRows)
    if (column0 + threadIdx.x < columns)
      tile[r][threadIdx.x] = from[(row0 + r) * columns + column0 + threadIdx.x];
  __syncthreads();
  for (int64_t c = threadIdx.y; c < kTile && column0 + c < columns; c += kTileRows)
    if (row0 + threadIdx.x < rows)
      to[(column0 + c) * rows + row0 + threadIdx.x] = tile[threadIdx.x][c];
}

template <class From, class To>
void transpose(Device& device, const From* from, To* to, int64_t rows, int64_t columns) {
  if (rows <= 0 || columns <= 0) return;
  const int64_t tiles = (rows + kTile - 1) / kTile * ((columns + kTile - 1) / kTile);
  transposeKernel<<<static_cast<unsigned>(tiles), dim3(kTile, kTileRows), 0, device.stream()>>>(
      from, to, rows, columns);
  throwIfNotLaunched();
  device.countLaunch();
}

#else

template <class From, class To>
void transpose(Device& device, const From* from, To* to, int64_t rows, int64_t columns) {
  for (int64_t i = 0; i < rows * columns; ++i) to[i] = from[i % rows * columns + i / rows];
  device.countLaunch();
}

#endif

}  // namespace

void transposeMatrix(Device& device, const float* from, float* to, int64_t rows, int64_t columns) {
  transpose(device, from, to, rows, columns);
}
void transposeMatrix(Device& device, const float* from, BFloat16* to, int64_t rows,
                     int64_t columns) {
  transpose(device, from, to, rows, columns);
}
void transposeMatrix(Device& device, const BFloat16* from, float* to, int64_t rows,
                     int64_t columns) {
  transpose(device, from, to, rows, columns);
}

}  // namespace dtf::gpu
