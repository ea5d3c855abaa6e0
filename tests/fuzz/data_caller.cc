#include "tests/fuzz/data_caller.h"

#include "tests/fuzz/reached.h"
#include "tests/fuzz/rpc_messages.h"
#include "tests/fuzz/rpc_world.h"

namespace dtf::fuzz {

namespace {

constexpr uint8_t kMemoryFrom = 244;  // of the methods
constexpr size_t kGivenMax = 4;

template <class Request>
kj::Promise<void> asked(Request&& request, const char* reaches = nullptr) {
  return request.send().ignoreResult().then([reaches] {
    if (reaches != nullptr) ++reached()[reaches];
  });
}

// The progress of a worker at `step`; now and then none, the end of all steps, or close to it.
uint64_t progressFor(uint64_t step) {
  if (step % 7 != 5) return step + 1;
  return step % 3 == 0 ? 0 : replication::kProgressEnd - step % 2;
}

// Rows of a few slices, mostly as many as the counts announce.
template <class Request>
void fillWanted(Arguments& arguments, Request& request) {
  const uint8_t kind = arguments.byte();
  auto counts = request.initWantedCounts(kind % 4);
  uint32_t ids = 0;
  for (uint32_t i = 0; i < counts.size(); ++i) {
    counts.set(i, arguments.byte() % 8);
    ids += counts[i];
  }
  auto rows = request.initWantedIds(kind > 240 ? arguments.byte() : ids);
  for (uint32_t i = 0; i < rows.size(); ++i)
    rows.set(i, kind > 200 ? arguments.number<uint32_t>() : i + kind / 64);
}

}  // namespace

// The key of a shared arena, mostly of the newest; or of none.
uint64_t DataCaller::keyIn(Arguments& arguments) const {
  const uint8_t which = arguments.byte();
  if (which == 0) return 0;
  if (given_.empty() || which > 250) return arguments.number<uint64_t>();
  return given_[given_.size() - 1 - which % 8 % given_.size()]->key();
}

kj::Promise<void> DataCaller::shareMemory(Arguments& arguments, schema::PsData::Client& data) {
  auto request = data.shareMemoryRequest();
  auto keys = request.initGradientKeys(arguments.byte() % 4);
  for (uint32_t i = 0; i < keys.size(); ++i) {
    const uint8_t kind = arguments.byte();  // mostly what a worker shares
    const size_t bytes = kind < 224 ? kElements * sizeof(float) : 1 + arguments.number<uint16_t>();
    if (given_.size() == kGivenMax) given_.erase(given_.begin());
    given_.push_back(std::make_unique<SharedMemory>(bytes));
    if (channel_ && kind % 16 != 15) channel_->give(*given_.back());
    keys.set(i, kind % 16 == 14 ? arguments.number<uint64_t>() : given_.back()->key());
  }
  return asked(request, keys.size() > 0 ? "memory" : nullptr);
}

kj::Promise<void> DataCaller::call(uint8_t method, Arguments& arguments, uint64_t epoch,
                                   const std::function<uint64_t(uint64_t step)>& epoch_at,
                                   schema::PsData::Client& data) {
  if (method >= kMemoryFrom) {
    if (method % 2 == 1) return shareMemory(arguments, data);
    return data.openDoorRequest().send().then([this](auto&& door) {
      channel_.emplace(
          net::MemoryChannel::connect(door.getAddress(), {door.getSecret0(), door.getSecret1()}));
    });
  }
  if (method % 4 == 0) {
    auto request = data.initialiseRequest();
    request.setEpoch(epoch);
    fillArena(arguments, [&](uint32_t chunks) { return request.initValues(chunks); });
    return asked(request);
  }
  if (method % 4 == 1) {
    auto request = data.pullRequest();
    const uint8_t wants = arguments.byte();
    request.setWantsStep(wants % 2 == 1);
    if (wants % 2 == 1) request.setWantedStep(arguments.count());
    if (wants % 8 > 3) request.setEpoch(epoch_at(wants));
    request.setProgress(progressFor(request.getWantedStep()));
    request.setInUse(keyIn(arguments));
    if (wants % 16 > 11) fillWanted(arguments, request);
    return asked(request);
  }
  if (method % 8 == 7) {
    auto request = data.averagesRequest();
    request.setCurrent(method % 16 == 15);
    return asked(request, "averages");
  }
  auto request = data.exchangeRequest();
  request.setStep(arguments.count());
  request.setEpoch(epoch_at(request.getStep()));
  request.setProgress(progressFor(request.getStep()));
  request.setBatch(static_cast<uint32_t>(arguments.count()));
  request.setLoss(arguments.number<float>());
  fillArena(arguments, [&](uint32_t chunks) { return request.initGradient(chunks); });
  fillRows(arguments, [&](uint32_t slices) { return request.initRows(slices); });
  const bool has_rows = request.getRows().size() > 0;
  if (request.getBatch() % 4 == 3) fillWanted(arguments, request);
  request.setGradientKey(keyIn(arguments));
  if (request.getGradientKey() != 0 && arguments.byte() % 8 != 1) {
    request.initGradient(0);
    request.initRows(0);
  }
  return asked(request, request.getGradientKey() != 0 ? "gradient in memory"
                        : has_rows                    ? "rows"
                                                      : nullptr);
}

}  // namespace dtf::fuzz
