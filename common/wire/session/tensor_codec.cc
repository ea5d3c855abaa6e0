#include "common/wire/session/tensor_codec.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/text.h"
#include "common/wire/arena_codec.h"

namespace dtf::wire {

namespace {

// Smaller ones are cheaper to copy than to send as segments of their own.
constexpr uint64_t kReferencedFrom = 32 << 10;
// A message has at most 512 segments. The others are for the allocations of Cap'n Proto.
constexpr uint32_t kReferencedMax = 400;

}  // namespace

TensorWriter::TensorWriter(net::MessageStream& stream, std::shared_ptr<const void> owner,
                           uint64_t chunk_bytes)
    : stream_(stream), owner_(std::move(owner)), chunk_bytes_(chunk_bytes) {
  DTF_CHECK(owner_ != nullptr);
}

// The owner owns nothing, but isn't null, which the stream requires.
TensorWriter::TensorWriter(net::MessageStream& stream, uint64_t chunk_bytes)
    : TensorWriter(stream, std::shared_ptr<const void>(std::shared_ptr<const void>(), &stream),
                   chunk_bytes) {}

uint32_t TensorWriter::blobs(uint64_t bytes) const {
  DTF_CHECK(bytes <= kTensorBytesMax);
  return chunksOf(bytes, chunk_bytes_);
}

void addToMessage(uint64_t& in_message, uint64_t bytes, const std::string& what) {
  if (bytes > kTensorBytesMax)
    throw Error(ErrorCode::kBadConfig,
                what + " has " + bytesText(bytes) +
                    "; the most that a tensor may have between processes is " +
                    bytesText(kTensorBytesMax) + ": split it");
  // The rest of the message is for other fields.
  constexpr uint64_t kMost = kTensorLimits.bytes_max - (kTensorLimits.bytes_max >> 4);
  if (bytes > kMost - in_message)
    throw Error(ErrorCode::kBadConfig, "with " + what + " a message has " +
                                           bytesText(in_message + bytes) +
                                           " of tensors; the most is " + bytesText(kMost) +
                                           ": feed and fetch less in one step");
  in_message += bytes;
}

void addToMessage(uint64_t& in_message, uint64_t bytes, const std::string& what,
                  const std::string& peer, uint64_t most) {
  addToMessage(in_message, bytes, what);
  if (in_message <= most) return;
  throw Error(ErrorCode::kBadConfig,
              "with " + what + " a message has " + bytesText(in_message) + " of tensors; " + peer +
                  " may hold " + bytesText(most) +
                  ", its share of its host's memory: send less in one step, or split it");
}

uint64_t copiedBytes(std::span<const uint64_t> sizes, uint64_t chunk_bytes) {
  uint64_t copied = 0;
  uint32_t referenced = 0;
  for (const uint64_t bytes : sizes) {
    const uint32_t blobs = chunksOf(bytes, chunk_bytes);
    if (bytes >= kReferencedFrom && referenced + blobs <= kReferencedMax) {
      referenced += blobs;
    } else {
      copied += bytes;
    }
  }
  return copied;
}

// Refers to whole tensors only, so that the receiver finds their blobs contiguous.
bool TensorWriter::isReferenced(uint64_t bytes) const {
  return bytes >= kReferencedFrom && referenced_ + blobs(bytes) <= kReferencedMax;
}

void TensorWriter::write(engine::Bytes bytes, capnp::List<capnp::Data>::Builder list) {
  DTF_CHECK(list.size() == blobs(bytes.size()));
  DTF_CHECK(reinterpret_cast<uintptr_t>(bytes.data()) % sizeof(capnp::word) == 0);
  const bool is_referenced = isReferenced(bytes.size());
  auto orphanage = capnp::Orphanage::getForMessageContaining(list);
  const auto* from = reinterpret_cast<const kj::byte*>(bytes.data());
  uint64_t left = bytes.size();
  for (uint32_t i = 0; i < list.size(); ++i) {
    const capnp::Data::Reader blob(from, std::min(left, chunk_bytes_));
    if (is_referenced) {
      list.adopt(i, orphanage.referenceExternalData(blob));
      stream_.keepUntilWritten(from, owner_);
      ++referenced_;
    } else {
      list.set(i, blob);
    }
    from += blob.size();
    left -= blob.size();
  }
}

void TensorWriter::write(const graph::TensorSpec& spec, engine::Bytes bytes,
                         schema::Tensor::Builder tensor) {
  tensor.setDtype(static_cast<uint8_t>(spec.dtype));
  auto shape = tensor.initShape(static_cast<uint32_t>(spec.shape.rank()));
  for (int axis = 0; axis < spec.shape.rank(); ++axis)
    shape.set(static_cast<uint32_t>(axis), spec.shape.dim(axis));
  write(bytes, tensor.initBytes(blobs(bytes.size())));
}

engine::Bytes readBytes(capnp::List<capnp::Data>::Reader list, uint64_t bytes, Buffer& assembled,
                        const std::string& what) {
  uint64_t there = 0;
  bool in_place = true;
  const kj::byte* first = nullptr;
  const kj::byte* end = nullptr;
  for (const capnp::Data::Reader blob : list) {
    if (blob.size() == 0) continue;  // has no place in memory
    if (first == nullptr)
      first = blob.begin();
    else if (blob.begin() != end)
      in_place = false;
    end = blob.end();
    there += blob.size();
  }
  if (there != bytes)
    throw Error(ErrorCode::kBadData, what + " came with " + std::to_string(there) +
                                         " bytes instead of " + std::to_string(bytes));
  if (bytes == 0) return {};
  if (in_place) return {reinterpret_cast<const std::byte*>(first), bytes};
  assembled = Buffer(bytes);
  std::byte* to = assembled.data();
  for (const capnp::Data::Reader blob : list) {
    if (blob.size() > 0) std::memcpy(to, blob.begin(), blob.size());
    to += blob.size();
  }
  return {assembled.data(), bytes};
}

DType readDType(uint8_t number, const std::string& what) {
  for (const DType dtype : {DType::kFloat32, DType::kUInt8, DType::kInt32, DType::kInt64})
    if (static_cast<uint8_t>(dtype) == number) return dtype;
  throw Error(ErrorCode::kBadData,
              what + " has the unknown element type " + std::to_string(number));
}

Shape readShape(capnp::List<int64_t>::Reader dims, const std::string& what) {
  if (dims.size() > kRankMax)
    throw Error(ErrorCode::kBadData, what + " has rank " + std::to_string(dims.size()) +
                                         "; the bound is " + std::to_string(kRankMax));
  // The product of the dimensions that aren't zero: a zero must not hide an overflow.
  uint64_t elements = 1;
  std::vector<int64_t> shape;
  for (const int64_t dim : dims) {
    if (dim < 0)
      throw Error(ErrorCode::kBadData, what + " has the dimension " + std::to_string(dim));
    const uint64_t times = std::max<uint64_t>(1, static_cast<uint64_t>(dim));
    if (times > kTensorBytesMax / elements)
      throw Error(ErrorCode::kBadData, what + " has more than " + std::to_string(kTensorBytesMax) +
                                           " bytes, the most of one tensor");
    elements *= times;
    shape.push_back(dim);
  }
  return Shape(std::move(shape));
}

graph::TensorSpec readSpec(schema::Tensor::Reader tensor, const std::string& what) {
  const DType dtype = readDType(tensor.getDtype(), what);
  Shape shape = readShape(tensor.getShape(), what);
  if (static_cast<uint64_t>(shape.elements()) * dtypeBytes(dtype) > kTensorBytesMax)
    throw Error(ErrorCode::kBadData, what + " has more than " + std::to_string(kTensorBytesMax) +
                                         " bytes, the most of one tensor");
  return {dtype, std::move(shape)};
}

Tensor readTensor(schema::Tensor::Reader reader, const std::string& what) {
  const graph::TensorSpec spec = readSpec(reader, what);
  const uint64_t bytes = spec.bytes();
  Buffer assembled;
  const engine::Bytes there = readBytes(reader.getBytes(), bytes, assembled, what);
  Tensor tensor(spec.dtype, spec.shape);  // allocated only after the bytes are known to be there
  if (bytes > 0) std::memcpy(tensor.data(), there.data(), bytes);
  return tensor;
}

}  // namespace dtf::wire
