#include "tests/fuzz/program.h"

#include <algorithm>
#include <iterator>

#include "common/base/check.h"

namespace dtf::fuzz {

namespace {

constexpr size_t kLengthBytes = 2;
constexpr size_t kGrowthMax = 64;  // of one call by one change

using Calls = std::vector<std::string>;

std::ptrdiff_t place(Random& random, size_t bound) {
  return static_cast<std::ptrdiff_t>(random.below(bound));
}

std::string newCall(Random& random) {
  std::string call(1 + random.below(24), '\0');
  for (char& c : call) c = static_cast<char>(random.below(3) == 0 ? random.below(256) : 0);
  call[0] = static_cast<char>(random.below(256));
  return call;
}

void mutateCall(std::string& call, const MutateBytes& mutate_bytes) {
  const size_t size = call.size();
  const size_t size_max = std::min(size + kGrowthMax, kCallBytesMax);
  call.resize(size_max);
  const size_t now = mutate_bytes(reinterpret_cast<uint8_t*>(call.data()), size, size_max);
  DTF_CHECK(now <= size_max);
  call.resize(now);
}

}  // namespace

Program parseProgram(const uint8_t* data, size_t size) {
  Program program;
  if (size == 0) return program;
  program.world = data[0];
  for (size_t at = 1; at < size;) {
    size_t length = data[at];
    if (at + 1 < size) length |= static_cast<size_t>(data[at + 1]) << 8;
    at = std::min(at + kLengthBytes, size);
    length = std::min(length, size - at);
    program.calls.emplace_back(reinterpret_cast<const char*>(data + at), length);
    at += length;
  }
  return program;
}

std::string programBytes(const Program& program, size_t bytes_max) {
  std::string bytes(1, static_cast<char>(program.world));
  for (const std::string& call : program.calls) {
    DTF_CHECK(call.size() <= kCallBytesMax);
    if (bytes.size() + kLengthBytes + call.size() > bytes_max) continue;
    bytes += static_cast<char>(call.size() & 0xff);
    bytes += static_cast<char>(call.size() >> 8);
    bytes += call;
  }
  return bytes;
}

void mutateProgram(Program& program, Random& random, const MutateBytes& mutate_bytes) {
  Calls& calls = program.calls;
  const uint64_t change = calls.empty() ? 7 : random.below(10);
  switch (change) {
    case 0:  // one less
      calls.erase(calls.begin() + place(random, calls.size()));
      return;
    case 1: {  // one again, there or elsewhere
      const std::string call = calls[random.below(calls.size())];
      calls.insert(calls.begin() + place(random, calls.size() + 1), call);
      return;
    }
    case 2:
      std::swap(calls[random.below(calls.size())], calls[random.below(calls.size())]);
      return;
    case 3: {  // several again, behind all
      const size_t from = random.below(calls.size());
      const size_t until = from + 1 + random.below(calls.size() - from);
      const Calls again(calls.begin() + static_cast<std::ptrdiff_t>(from),
                        calls.begin() + static_cast<std::ptrdiff_t>(until));
      calls.insert(calls.end(), again.begin(), again.end());
      return;
    }
    case 6:
      program.world = static_cast<uint8_t>(random.below(256));
      return;
    case 7:
      calls.insert(calls.begin() + place(random, calls.size() + 1), newCall(random));
      return;
    default:  // most of the time
      return mutateCall(calls[random.below(calls.size())], mutate_bytes);
  }
}

void shortenProgram(Program& program, size_t calls_max, Random& random) {
  while (program.calls.size() > calls_max)
    program.calls.erase(program.calls.begin() + place(random, program.calls.size()));
}

Program crossPrograms(const Program& one, const Program& other, Random& random) {
  Program crossed = one;
  const auto from = other.calls.begin() + place(random, other.calls.size() + 1);
  if (random.below(2) == 0) {
    crossed.calls.resize(random.below(one.calls.size() + 1));
    crossed.calls.insert(crossed.calls.end(), from, other.calls.end());
    return crossed;
  }
  const auto until = from + place(random, static_cast<size_t>(other.calls.end() - from) + 1);
  crossed.calls.insert(crossed.calls.begin() + place(random, crossed.calls.size() + 1), from,
                       until);
  return crossed;
}

}  // namespace dtf::fuzz
