#include "common/summary/proto_writer.h"

#include <bit>
#include <cstring>

namespace dtf::summary {

static_assert(std::endian::native == std::endian::little, "fixed fields are little-endian");

namespace {

enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kLengthDelimited = 2, kFixed32 = 5 };

}  // namespace

void ProtoWriter::varint(uint64_t value) {
  for (; value >= 0x80; value >>= 7) encoded_.push_back(static_cast<char>(value | 0x80));
  encoded_.push_back(static_cast<char>(value));
}

void ProtoWriter::key(uint32_t field, uint32_t wire_type) {
  varint(uint64_t{field} << 3 | wire_type);
}

template <class T>
void ProtoWriter::fixed(T value) {
  encoded_.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void ProtoWriter::integer(uint32_t field, int64_t value) {
  key(field, kVarint);
  varint(static_cast<uint64_t>(value));
}

void ProtoWriter::number(uint32_t field, double value) {
  key(field, kFixed64);
  fixed(value);
}

void ProtoWriter::single(uint32_t field, float value) {
  key(field, kFixed32);
  fixed(value);
}

void ProtoWriter::bytes(uint32_t field, std::string_view value) {
  key(field, kLengthDelimited);
  varint(value.size());
  encoded_.append(value);
}

void ProtoWriter::packed(uint32_t field, std::span<const double> values) {
  bytes(field, {reinterpret_cast<const char*>(values.data()), values.size_bytes()});
}

}  // namespace dtf::summary
