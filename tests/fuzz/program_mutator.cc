// libFuzzer's hooks for the targets that read programs (program.h).

#include <algorithm>
#include <cstring>
#include <utility>

#include "tests/fuzz/program.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t size_max);

namespace {

using namespace dtf::fuzz;

// Limits the mutated programs: calls cost time, and longer programs reach little more. A seed may
// be longer.
constexpr size_t kCallsMax = 24;

size_t store(Program program, dtf::Random& random, uint8_t* to, size_t size_max) {
  shortenProgram(program, kCallsMax, random);
  const std::string bytes = programBytes(program, size_max);
  std::memcpy(to, bytes.data(), bytes.size());
  return bytes.size();
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t size_max,
                                          unsigned seed) {
  dtf::Random random(seed);
  // Also mutates plain bytes: the mutator has to try wrong lengths, too.
  if (random.below(10) == 0) return LLVMFuzzerMutate(data, size, size_max);
  Program program = parseProgram(data, size);
  // Some states need several changes at once, because one alone has no effect.
  for (uint64_t changes = 1 + random.below(3); changes > 0; --changes)
    mutateProgram(program, random, LLVMFuzzerMutate);
  return store(std::move(program), random, data, size_max);
}

extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t* one, size_t one_size,
                                            const uint8_t* other, size_t other_size, uint8_t* to,
                                            size_t size_max, unsigned seed) {
  dtf::Random random(seed);
  return store(crossPrograms(parseProgram(one, one_size), parseProgram(other, other_size), random),
               random, to, size_max);
}
