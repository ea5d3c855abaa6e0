#pragma once

// Calls of a chief whose checkpoints gather, with arguments from the fuzzer's bytes.

#include <cstdint>
#include <string_view>
#include <vector>

#include "common/base/checksum.h"
#include "common/wire/ps.capnp.h"
#include "tests/fuzz/arguments.h"

namespace dtf::fuzz {

inline constexpr uint8_t kTravelListMax = 64;

template <class Request>
void fillPosition(const std::vector<uint64_t>& numbers, Request& request) {
  auto position = request.initPosition(static_cast<uint32_t>(numbers.size()));
  for (uint32_t i = 0; i < position.size(); ++i) position.set(i, numbers[i]);
}

// `last_cut`: the place that was asked for last. `send` takes a request.
template <class Send>
void travelCall(schema::PsCheckpoint::Client& checkpoint, uint8_t method, Arguments& arguments,
                const std::vector<uint64_t>& last_cut, const Send& send) {
  switch (method % 6) {
    case 0: {
      auto request = checkpoint.seeRequest();
      request.setFile(arguments.folder());
      request.setSeconds(arguments.number<double>());
      return send(request);
    }
    case 1: {
      auto request = checkpoint.stageRequest();
      fillPosition(last_cut, request);
      return send(request);
    }
    case 2: {
      auto request = checkpoint.fetchRequest();
      request.setOffset(arguments.count());
      request.setBytes(static_cast<uint32_t>(arguments.count()));
      return send(request);
    }
    case 3: {
      auto request = checkpoint.releaseRequest();
      request.setSaved(arguments.byte() % 2 == 1);
      return send(request);
    }
    case 4: {
      auto request = checkpoint.expectRequest();
      request.setGlobalStep(arguments.count());
      auto batches = request.initWorkerBatches(arguments.byte() % kTravelListMax);
      for (uint32_t i = 0; i < batches.size(); ++i) batches.set(i, arguments.count());
      request.initClocks(arguments.byte() % kTravelListMax);
      return send(request);
    }
    default: {
      auto request = checkpoint.bringRequest();
      request.setArena(static_cast<uint32_t>(arguments.count()));
      request.setOffset(arguments.count());
      const std::string_view values = arguments.take(arguments.byte());
      request.setValues(
          kj::arrayPtr(reinterpret_cast<const kj::byte*>(values.data()), values.size()));
      request.setChecksum(checksumOf(values));
      return send(request);
    }
  }
}

}  // namespace dtf::fuzz
