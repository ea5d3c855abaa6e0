#pragma once

// An input of the targets that speak RPC, as a program: one byte that chooses its world, then
// calls. Each call is two bytes of length (little-endian) and that many bytes, from which the
// target reads an operation and its arguments. Any bytes are a program: a length beyond the end
// means the rest. So a call can be cut, doubled, moved or changed without changing the meaning of
// the others.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/base/random.h"

namespace dtf::fuzz {

inline constexpr size_t kCallBytesMax = 0xffff;

struct Program {
  uint8_t world = 0;
  std::vector<std::string> calls;  // each at most kCallBytesMax
  bool operator==(const Program&) const = default;
};

Program parseProgram(const uint8_t* data, size_t size);

// Calls that would go beyond `bytes_max` are left out.
std::string programBytes(const Program& program, size_t bytes_max);

// Changes bytes in place and returns their new number: LLVMFuzzerMutate.
using MutateBytes = std::function<size_t(uint8_t* data, size_t size, size_t size_max)>;

// One change of a program: of the order or number of its calls, of the bytes of one call, or of the
// world.
void mutateProgram(Program& program, Random& random, const MutateBytes& mutate_bytes);

// Drops calls, any of them, until `calls_max` are left.
void shortenProgram(Program& program, size_t calls_max, Random& random);

// The calls of one up to some place, then calls of the other from some place on; or some calls of
// the other in the middle of the one.
Program crossPrograms(const Program& one, const Program& other, Random& random);

}  // namespace dtf::fuzz
