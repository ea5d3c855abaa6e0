#pragma once

// Tensors in messages: large ones by reference to the sender's memory, and used where the socket
// put them; small ones copied, many to a message.

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

// Of one tensor. Beyond it nothing is declared, sent or received.
inline constexpr uint64_t kTensorBytesMax = uint64_t{8} << 30;
inline constexpr uint32_t kRankMax = 16;

// What a connection between serving tasks and their clients takes after the hello.
inline constexpr net::Limits kTensorLimits{.bytes_max = uint64_t{16} << 30, .segments_max = 512};

// Counts a tensor of `bytes` in a message that has `in_message` of them so far.
// Errors: kBadConfig that names `what` and the bound, for more than one tensor or one message may
// have.
void addToMessage(uint64_t& in_message, uint64_t bytes, const std::string& what);
// As its receiver says: `peer` may hold `most`.
void addToMessage(uint64_t& in_message, uint64_t bytes, const std::string& what,
                  const std::string& peer, uint64_t most);

// Of tensors of these sizes, written to one message in this order: the bytes that it holds itself,
// as the others are referred to.
uint64_t copiedBytes(std::span<const uint64_t> sizes, uint64_t chunk_bytes = kChunkBytesMax);

// Where the bytes of a message's tensors go: the stream that will write it, which keeps `owner`
// until it has.
// Borrows: the stream. One for each message, used before it is sent.
class TensorWriter {
 public:
  // `chunk_bytes`: of a blob, see arena_codec.h.
  TensorWriter(net::MessageStream& stream, std::shared_ptr<const void> owner,
               uint64_t chunk_bytes = kChunkBytesMax);
  // Where the caller keeps the bytes until the message has been answered.
  explicit TensorWriter(net::MessageStream& stream, uint64_t chunk_bytes = kChunkBytesMax);

  // How many blobs a tensor takes.
  uint32_t blobs(uint64_t bytes) const;

  // `list` has blobs(bytes.size()) entries. The bytes are aligned to 8, and may be read up to the
  // next multiple of 8, as what a Buffer or a device gives is.
  void write(engine::Bytes bytes, capnp::List<capnp::Data>::Builder list);
  void write(const graph::TensorSpec& spec, engine::Bytes bytes, schema::Tensor::Builder tensor);

 private:
  bool isReferenced(uint64_t bytes) const;

  net::MessageStream& stream_;
  const std::shared_ptr<const void> owner_;
  const uint64_t chunk_bytes_;
  uint32_t referenced_ = 0;  // blobs of this message
};

// The bytes in `list`: where they are when its blobs lie one after the other (they do when a
// TensorWriter made them), else copied into `assembled`.
// Errors: kBadData unless there are exactly `bytes`; `what` names the tensor.
engine::Bytes readBytes(capnp::List<capnp::Data>::Reader list, uint64_t bytes, Buffer& assembled,
                        const std::string& what);

// Type and shape. Errors: kBadData for what no tensor has, or more than kTensorBytesMax; `what`
// names it.
graph::TensorSpec readSpec(schema::Tensor::Reader tensor, const std::string& what);

// A copy. Errors: those of readSpec() and readBytes().
Tensor readTensor(schema::Tensor::Reader tensor, const std::string& what);

// Errors: kBadData for a number that no type has.
DType readDType(uint8_t number, const std::string& what);
// Errors: kBadData for a shape that no tensor has; its elements take at most kTensorBytesMax.
Shape readShape(capnp::List<int64_t>::Reader dims, const std::string& what);

}  // namespace dtf::wire
