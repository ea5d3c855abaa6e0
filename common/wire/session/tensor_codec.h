#pragma once

// Tensors in messages. Large ones are sent by reference to the sender's memory, and used where the
// socket has put them. Small ones are copied, many to a message.

#include <capnp/orphan.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "common/engine/part_program.h"
#include "common/graph/graph.h"
#include "common/net/message_stream.h"
#include "common/tensor/buffer.h"
#include "common/tensor/tensor.h"
#include "common/wire/arena_codec.h"
#include "common/wire/parts.capnp.h"

namespace dtf::wire {

// Bounds of one tensor. No larger one is declared, sent or received.
inline constexpr uint64_t kTensorBytesMax = uint64_t{8} << 30;
inline constexpr uint32_t kRankMax = 16;

// Limits after the hello of a connection between serving tasks, or with their clients.
inline constexpr net::Limits kTensorLimits{.bytes_max = uint64_t{16} << 30, .segments_max = 512};

// Adds a tensor of `bytes` to a message with `in_message` bytes of tensors so far.
// Errors: kBadConfig with `what` and the bound, if the tensor or the message is too large.
void addToMessage(uint64_t& in_message, uint64_t bytes, const std::string& what);
// The same with the receiver's own limit: `peer` may hold `most` bytes.
void addToMessage(uint64_t& in_message, uint64_t bytes, const std::string& what,
                  const std::string& peer, uint64_t most);

// Returns the bytes that a message contains as copies, if tensors of these sizes are written to it
// in this order. It refers to the others.
uint64_t copiedBytes(std::span<const uint64_t> sizes, uint64_t chunk_bytes = kChunkBytesMax);

// Writes the tensors of one message. The stream of the message keeps `owner` until it is written.
// Borrows: the stream.
// Threads: thread-compatible.
class TensorWriter {
 public:
  // `chunk_bytes`: of a blob, see arena_codec.h.
  TensorWriter(net::MessageStream& stream, std::shared_ptr<const void> owner,
               uint64_t chunk_bytes = kChunkBytesMax);
  // For a caller that keeps the bytes until the reply to the message.
  explicit TensorWriter(net::MessageStream& stream, uint64_t chunk_bytes = kChunkBytesMax);

  // Returns the number of blobs of a tensor.
  uint32_t blobs(uint64_t bytes) const;

  // `list` has blobs(bytes.size()) entries. The bytes are aligned to 8, and readable up to the next
  // multiple of 8, like the memory of a Buffer or a device.
  void write(engine::Bytes bytes, capnp::List<capnp::Data>::Builder list);
  void write(const graph::TensorSpec& spec, engine::Bytes bytes, schema::Tensor::Builder tensor);

 private:
  bool isReferenced(uint64_t bytes) const;

  net::MessageStream& stream_;
  const std::shared_ptr<const void> owner_;
  const uint64_t chunk_bytes_;
  uint32_t referenced_ = 0;  // blobs of this message
};

// Returns the bytes in `list`: in place if its blobs are contiguous, as a TensorWriter makes them,
// otherwise copied into `assembled`.
// Errors: kBadData unless there are exactly `bytes`; `what` names the tensor.
engine::Bytes readBytes(capnp::List<capnp::Data>::Reader list, uint64_t bytes, Buffer& assembled,
                        const std::string& what);

// Reads type and shape; `what` names the tensor in errors.
// Errors: kBadData if they are invalid, or for more than kTensorBytesMax.
graph::TensorSpec readSpec(schema::Tensor::Reader tensor, const std::string& what);

// Returns a copy of the tensor.
// Errors: as readSpec() and readBytes().
Tensor readTensor(schema::Tensor::Reader tensor, const std::string& what);

// Errors: kBadData for an unknown type.
DType readDType(uint8_t number, const std::string& what);
// Errors: kBadData for an invalid shape, or one with more elements than kTensorBytesMax holds.
Shape readShape(capnp::List<int64_t>::Reader dims, const std::string& what);

}  // namespace dtf::wire
