// A task's part of a plan, from a hostile client. A decoded part passes the checks or is refused by
// them, and stays the same when it is encoded again.

#include <capnp/message.h>
#include <capnp/serialize.h>
#include <kj/async-io.h>

#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "common/engine/task_part.h"
#include "common/graph/device_name.h"
#include "common/net/message_stream.h"
#include "common/wire/session/part_codec.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/reached.h"

namespace {

using namespace dtf;

const fuzz::MustReach kMustReach{"a part that is accepted"};

// The limit that common/net sets for each message.
constexpr uint64_t kTraversalFactor = 8;

std::optional<wire::DecodedPart> decode(const std::vector<capnp::word>& words) {
  capnp::ReaderOptions options;
  options.traversalLimitInWords = words.size() * kTraversalFactor;
  std::optional<wire::DecodedPart> decoded;
  try {
    capnp::FlatArrayMessageReader message(kj::arrayPtr(words.data(), words.size()), options);
    decoded.emplace(wire::decodePart(message.getRoot<schema::Part>()));
  } catch (const Error& error) {
    FUZZ_CHECK(error.code() == ErrorCode::kBadData || error.code() == ErrorCode::kBadConfig);
  } catch (const kj::Exception&) {  // Cap'n Proto rejects the message
  }
  return decoded;
}

wire::Processes processesOf(const wire::DecodedPart& decoded) {
  wire::Processes processes;
  for (size_t i = 0; i < decoded.part.edges.size(); ++i)
    processes[decoded.part.edges[i].peer] = decoded.peers[i];
  return processes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<capnp::word> words(size / sizeof(capnp::word));
  if (!words.empty()) std::memcpy(words.data(), data, words.size() * sizeof(capnp::word));
  std::optional<wire::DecodedPart> decoded = decode(words);
  if (!decoded) return 0;
  const uint64_t digest = engine::digestOf(decoded->part);
  FUZZ_CHECK(decoded->peers.size() == decoded->part.edges.size());
  try {
    const TaskId self = decoded->part.task;
    engine::checkTaskPart(decoded->part, self, {graph::fullDevice(self)});
  } catch (const Error& error) {
    FUZZ_CHECK(error.code() == ErrorCode::kBadConfig);
    return 0;
  }
  const wire::Processes processes = processesOf(*decoded);
  const auto part = std::make_shared<const engine::TaskPart>(std::move(decoded->part));
  capnp::MallocMessageBuilder message;
  auto pipe = kj::newTwoWayPipe();
  auto stream = net::wrapStream(kj::mv(pipe.ends[0]));
  wire::encodePart(part, processes, *stream, message.initRoot<schema::Part>());
  const auto again = wire::decodePart(message.getRoot<schema::Part>().asReader());
  FUZZ_CHECK(engine::digestOf(again.part) == digest);
  ++fuzz::reached()["a part that is accepted"];
  return 0;
}
