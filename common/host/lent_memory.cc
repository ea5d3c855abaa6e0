#include "common/host/lent_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/log.h"

namespace dtf::host {

namespace {

// Exchanges may overlap: the worker writes one arena while this process reads the other.
constexpr uint32_t kGradientsMax = 2;

}  // namespace

LentMemory::~LentMemory() {
  for (const auto& parameters : lent_) parameters->retire();
}

const net::MemoryDoor& LentMemory::openDoor() {
  return door_.emplace();
}

void LentMemory::accept(capnp::List<uint64_t>::Reader keys, uint64_t elements) {
  if (keys.size() > kGradientsMax)
    throw Error(ErrorCode::kBadData, fmt::format("{} gradient arenas of one worker; the most is {}",
                                                 keys.size(), kGradientsMax));
  std::optional<net::MemoryChannel> channel;
  if (door_) channel = door_->take();
  door_.reset();
  if (!channel)
    throw Error(ErrorCode::kUnavailable, "the worker has not connected for shared memory");
  gradients_.clear();
  given_.clear();  // a new channel: the worker has none of these arenas
  for (const uint64_t key : keys) {
    std::optional<net::GivenMemory> given = channel->receive(arena::sharedArenaBytesMax(elements));
    if (!given || given->key != key || given->memory->bytes() < elements * sizeof(float))
      throw Error(
          ErrorCode::kBadData,
          fmt::format("a gradient arena of {} elements was named, but not shared", elements));
    gradients_.emplace(key, std::move(given->memory));
  }
  channel_ = std::move(channel);
}

std::shared_ptr<const MappedMemory> LentMemory::page(uint64_t key, size_t bytes) {
  std::optional<net::GivenMemory> given;
  if (channel_) given = channel_->receive(bytes);
  if (!given || given->key != key)
    throw Error(ErrorCode::kBadData, "a page of requests was named, but not shared");
  if (given->memory->bytes() < bytes)
    throw Error(ErrorCode::kBadData, fmt::format("a page of requests has {} bytes, not {}",
                                                 given->memory->bytes(), bytes));
  return std::move(given->memory);
}

void LentMemory::givePage(const SharedMemory& page) {
  DTF_CHECK(channel_.has_value());
  channel_->give(page);
}

RemoteLoan& LentMemory::openRemote(net::Loop& loop, std::shared_ptr<net::RemoteDomain> domain,
                                   uint64_t elements) {
  if (remote_ != nullptr)
    throw Error(
        ErrorCode::kBadData,
        fmt::format("{} asks for a second channel of RDMA on one connection", worker_.name()));
  given_.clear();  // a new channel: the worker knows none of these arenas
  remote_ = std::make_unique<RemoteLoan>(loop, std::move(domain), elements);
  shard_.shareParameters();
  return *remote_;
}

std::optional<net::RemoteArena> LentMemory::takeNew() {
  return remote_ != nullptr ? remote_->takeNew() : std::nullopt;
}

arena::Gradient LentMemory::gradient(uint64_t key, uint64_t elements) const {
  if (remote_ != nullptr) return remote_->gradient(key);
  const auto found = gradients_.find(key);
  if (found == gradients_.end() || found->second->bytes() < elements * sizeof(float))
    throw Error(ErrorCode::kBadData,
                fmt::format("a gradient in memory {:016x}, which was not shared", key));
  arena::Gradient gradient{{reinterpret_cast<const float*>(found->second->data()), elements},
                           found->second};
  gradient.is_lent = true;
  return gradient;
}

void LentMemory::keepOnly(uint64_t key) {
  std::erase_if(lent_,
                [key](const auto& parameters) { return parameters->sharedMemory()->key() != key; });
}

uint64_t LentMemory::lend(const std::shared_ptr<const arena::ParameterVersion>& parameters) {
  if (!channel_ && remote_ == nullptr) return 0;
  const std::shared_ptr<const SharedMemory>& memory = parameters->sharedMemory();
  if (memory == nullptr) {
    shard_.shareParameters();
    return 0;
  }
  if (!give(memory)) return 0;
  if (std::find(lent_.begin(), lent_.end(), parameters) == lent_.end()) lent_.push_back(parameters);
  return memory->key();
}

void LentMemory::lend(const std::shared_ptr<const arena::ParameterVersion>& parameters,
                      wire::BoardReply& reply) {
  reply.key = lend(parameters);
  reply.by_call = reply.key == 0;
  if (reply.by_call) return;
  const std::vector<uint64_t> gone = takeGone(wire::kBoardGoneMax);
  std::copy(gone.begin(), gone.end(), reply.gone.begin());
}

bool LentMemory::give(const std::shared_ptr<const SharedMemory>& memory) {
  if (given_.contains(memory->key())) return true;
  if (remote_ != nullptr) {
    remote_->offer(memory);
    given_.emplace(memory->key(), memory);
    return true;
  }
  try {
    channel_->give(*memory);
  } catch (const Error& error) {
    log::warning("event=memory_not_shared peer={} error=\"{}\"", worker_.name(), error.message());
    channel_.reset();
    return false;
  }
  given_.emplace(memory->key(), memory);
  return true;
}

std::vector<uint64_t> LentMemory::takeGone(size_t most) {
  std::vector<uint64_t> gone;
  std::erase_if(given_, [&gone, most](const auto& entry) {
    const bool is_told = entry.second.expired() && gone.size() < most;
    if (is_told) gone.push_back(entry.first);
    return is_told;
  });
  return gone;
}

}  // namespace dtf::host
