#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <list>
#include <map>
#include <optional>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/net/channels/ucx_domain.h"
#include "common/net/error_bridge.h"

namespace dtf::net {

namespace {

// The time between looks at operations under way, for deadlines and for events that no descriptor
// shows.
constexpr auto kTick = 2 * kj::MILLISECONDS;
constexpr int kRoundsMax = 64;  // of UCX's progress in one turn of the loop
constexpr Duration kCloseMax = std::chrono::milliseconds(100);
// Zeros behind bytes of a peer that UCX reads without a bound. A card key has at most 64 parts of
// 256 bytes.
constexpr size_t kZerosBehind = 20480;

std::vector<std::byte> padded(std::span<const std::byte> bytes) {
  std::vector<std::byte> copy(bytes.size() + kZerosBehind);
  std::copy(bytes.begin(), bytes.end(), copy.begin());
  return copy;
}

// An operation under way. UCX's callbacks write to it, and nothing else of this program runs in
// them.
struct Operation {
  RemoteWait wait;
  TimePoint until;
  std::shared_ptr<const RegisteredMemory> memory;
  kj::Own<kj::PromiseFulfiller<void>> waiting;
  int pending = 0;  // requests of UCX
  ucs_status_t status = UCS_OK;
  const UcxLibrary* ucx = nullptr;
};

void completed(void* request, ucs_status_t status, void* user) noexcept {
  auto* const operation = static_cast<Operation*>(user);
  if (status != UCS_OK && operation->status == UCS_OK) operation->status = status;
  --operation->pending;
  operation->ucx->request_free(request);
}

class UcxChannel final : public RemoteChannel, public Polled {
 public:
  UcxChannel(Loop& loop, std::shared_ptr<UcxDomain> domain);
  ~UcxChannel() noexcept(false) override;

  const std::vector<std::byte>& address() const override { return address_; }
  void connect(std::span<const std::byte> address) override;
  std::string transports() const override;
  void learn(const RemoteArena& arena) override;
  void forget(uint64_t key) override;
  bool knows(uint64_t key) const override { return arenas_.contains(key); }
  size_t knownCount() const override { return arenas_.size(); }
  kj::Promise<void> get(RemoteWait wait, std::shared_ptr<const RegisteredMemory> to, uint64_t bytes,
                        uint64_t key) override;
  kj::Promise<void> put(RemoteWait wait, std::shared_ptr<const RegisteredMemory> from,
                        uint64_t bytes, uint64_t key) override;

  bool poll() override { return progress(); }
  bool beforeSleep() override;

 private:
  struct Learned {
    RemoteArena arena;
    ucp_rkey_h key = nullptr;
  };

  [[noreturn]] void fail(std::string_view doing, ucs_status_t status) const {
    throw Error(ErrorCode::kUnavailable,
                fmt::format("RDMA: cannot {}: {}", doing, ucx_.status_string(status)));
  }
  void openWorker();
  ucs_status_t makeEndpoint(const std::vector<std::byte>& address, ucp_err_handling_mode_t mode);
  void close();
  const Learned& find(uint64_t key, uint64_t bytes, const RegisteredMemory& memory) const;
  Operation& begin(RemoteWait wait, std::shared_ptr<const RegisteredMemory> memory);
  kj::Exception faultOf(const RemoteWait& wait) const {
    return toKj(asio::error::not_connected, fmt::format("RDMA {}: {}", wait.what, fault_));
  }
  static void count(Operation& operation, ucs_status_ptr_t request);
  static ucp_request_param_t paramsOf(Operation& operation);
  kj::Promise<void> started(Operation& operation);
  bool progress();
  bool settle();
  bool rejectAll();
  bool isAnyAwaited() const;
  void startTicking();
  kj::Promise<void> tick();

  Loop& loop_;
  const std::shared_ptr<UcxDomain> domain_;
  const UcxLibrary& ucx_;
  ucp_worker_h worker_ = nullptr;
  ucp_ep_h endpoint_ = nullptr;
  std::vector<std::byte> address_;
  std::map<uint64_t, Learned> arenas_;
  std::list<Operation> operations_;  // until UCX is done with them
  ucs_status_t broken_ = UCS_OK;     // written by UCX's callback
  bool can_force_ = false;
  std::string fault_;  // why all operations fail; empty: they don't
  std::unique_ptr<DescriptorWatch> watch_;
  bool is_polled_ = false;
  bool is_ticking_ = false;
  kj::Promise<void> ticking_ = kj::READY_NOW;
};

UcxChannel::UcxChannel(Loop& loop, std::shared_ptr<UcxDomain> domain)
    : loop_(loop), domain_(std::move(domain)), ucx_(domain_->context()->ucx) {
  try {
    openWorker();
  } catch (...) {
    if (worker_ != nullptr) ucx_.worker_destroy(worker_);
    throw;
  }
  is_polled_ = loop_.addPolled(*this);
}

void UcxChannel::openWorker() {
  ucp_worker_params_t params{};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  params.thread_mode = UCS_THREAD_MODE_SINGLE;
  ucs_status_t status = ucx_.worker_create(domain_->context()->handle, &params, &worker_);
  if (status != UCS_OK) fail("make a worker of UCX", status);
  ucp_address_t* address = nullptr;
  size_t bytes = 0;
  status = ucx_.worker_get_address(worker_, &address, &bytes);
  if (status != UCS_OK) fail("get the address of a worker of UCX", status);
  const auto* const first = reinterpret_cast<const std::byte*>(address);
  address_.assign(first, first + bytes);
  ucx_.worker_release_address(worker_, address);
  int descriptor = -1;
  status = ucx_.worker_get_efd(worker_, &descriptor);
  if (status != UCS_OK) fail("get the descriptor of a worker of UCX", status);
  watch_ = loop_.watch(descriptor, [this] {
    progress();
    beforeSleep();
  });
  if (watch_ == nullptr)
    throw Error(ErrorCode::kUnavailable, "RDMA: this loop can't wait for a descriptor");
}

UcxChannel::~UcxChannel() noexcept(false) {
  ticking_ = kj::READY_NOW;
  if (is_polled_) loop_.removePolled(*this);
  watch_ = nullptr;
  fault_ = "the channel was closed";
  rejectAll();
  close();
}

// UCX completes every operation of an endpoint that is closed by force.
void UcxChannel::close() {
  for (auto& [key, learned] : arenas_) ucx_.rkey_destroy(learned.key);
  if (endpoint_ != nullptr && can_force_) {
    ucp_request_param_t params{};
    params.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    params.flags = UCP_EP_CLOSE_FLAG_FORCE;
    const ucs_status_ptr_t closing = ucx_.ep_close_nbx(endpoint_, &params);
    const TimePoint until = loop_.clock().now() + kCloseMax;
    while (UCS_PTR_IS_PTR(closing) && ucx_.request_check_status(closing) == UCS_INPROGRESS &&
           loop_.clock().now() < until)
      ucx_.worker_progress(worker_);
    if (UCS_PTR_IS_PTR(closing)) ucx_.request_free(closing);
  }
  ucx_.worker_destroy(worker_);
}

void UcxChannel::connect(std::span<const std::byte> address) {
  DTF_CHECK(endpoint_ == nullptr);
  if (address.empty() || address.size() > kRemoteAddressBytesMax)
    throw Error(ErrorCode::kBadData, fmt::format("an address for RDMA of {} bytes; the most is {}",
                                                 address.size(), kRemoteAddressBytesMax));
  const std::vector<std::byte> copy = padded(address);
  ucs_status_t status = makeEndpoint(copy, UCP_ERR_HANDLING_MODE_PEER);
  can_force_ = status == UCS_OK;
  // UCX's memory of one host finds no dead peer. The connection with the words does, and the
  // deadlines.
  if (status == UCS_ERR_UNREACHABLE) status = makeEndpoint(copy, UCP_ERR_HANDLING_MODE_NONE);
  if (status != UCS_OK) fail("connect", status);
}

ucs_status_t UcxChannel::makeEndpoint(const std::vector<std::byte>& address,
                                      ucp_err_handling_mode_t mode) {
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = reinterpret_cast<const ucp_address_t*>(address.data());
  params.err_mode = mode;
  params.err_handler.cb = [](void* user, ucp_ep_h /*endpoint*/, ucs_status_t status) noexcept {
    *static_cast<ucs_status_t*>(user) = status;
  };
  params.err_handler.arg = &broken_;
  return ucx_.ep_create(worker_, &params, &endpoint_);
}

// UCX 1.13 has no other way to ask.
std::string UcxChannel::transports() const {
  DTF_CHECK(endpoint_ != nullptr);
  char* text = nullptr;
  size_t bytes = 0;
  FILE* const memory = ::open_memstream(&text, &bytes);
  if (memory == nullptr) return {};
  ucx_.ep_print_info(endpoint_, memory);
  std::fclose(memory);
  std::string found = transportsIn({text, bytes});
  std::free(text);
  return found;
}

void UcxChannel::learn(const RemoteArena& arena) {
  DTF_CHECK(endpoint_ != nullptr);
  if (const std::string fault = cardKeyFault(arena.card_key); !fault.empty())
    throw Error(ErrorCode::kBadData, "a peer sent a card key that is none: " + fault);
  if (arena.key == 0 || arena.address == 0 || arena.bytes == 0 ||
      arena.address + arena.bytes < arena.address)
    throw Error(ErrorCode::kBadData, "a peer sent an arena that is none");
  const std::vector<std::byte> copy = padded(arena.card_key);
  Learned learned{arena, nullptr};
  const ucs_status_t status = ucx_.ep_rkey_unpack(endpoint_, copy.data(), &learned.key);
  if (status != UCS_OK) fail("read the card key of a peer", status);
  forget(arena.key);
  arenas_.emplace(arena.key, std::move(learned));
}

void UcxChannel::forget(uint64_t key) {
  const auto found = arenas_.find(key);
  if (found == arenas_.end()) return;
  ucx_.rkey_destroy(found->second.key);
  arenas_.erase(found);
}

const UcxChannel::Learned& UcxChannel::find(uint64_t key, uint64_t bytes,
                                            const RegisteredMemory& memory) const {
  const auto found = arenas_.find(key);
  if (found == arenas_.end())
    throw Error(ErrorCode::kBadData, fmt::format("memory {:016x} of a peer is not known", key));
  const uint64_t most = std::min<uint64_t>(found->second.arena.bytes, memory.bytes());
  if (bytes > most)
    throw Error(
        ErrorCode::kBadData,
        fmt::format("{} bytes of memory {:016x}, of which a peer has {}", bytes, key, most));
  return found->second;
}

Operation& UcxChannel::begin(RemoteWait wait, std::shared_ptr<const RegisteredMemory> memory) {
  DTF_CHECK(fault_.empty());
  Operation& operation = operations_.emplace_back();
  operation.until = loop_.clock().now() + wait.deadline;
  operation.wait = std::move(wait);
  operation.memory = std::move(memory);
  operation.ucx = &ucx_;
  return operation;
}

ucp_request_param_t UcxChannel::paramsOf(Operation& operation) {
  ucp_request_param_t params{};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  params.cb.send = completed;
  params.user_data = &operation;
  params.op_attr_mask |= UCP_OP_ATTR_FIELD_MEMH;
  params.memh = static_cast<const UcxMemory&>(*operation.memory).handle();
  return params;
}

// A request that is null is complete, and has no callback.
void UcxChannel::count(Operation& operation, ucs_status_ptr_t request) {
  if (UCS_PTR_IS_PTR(request)) ++operation.pending;
  if (UCS_PTR_IS_ERR(request)) operation.status = UCS_PTR_STATUS(request);
}

kj::Promise<void> UcxChannel::get(RemoteWait wait, std::shared_ptr<const RegisteredMemory> to,
                                  uint64_t bytes, uint64_t key) {
  const Learned& from = find(key, bytes, *to);
  if (!fault_.empty()) return faultOf(wait);
  std::byte* const data = to->data();
  Operation& operation = begin(std::move(wait), std::move(to));
  const ucp_request_param_t params = paramsOf(operation);
  count(operation, ucx_.get_nbx(endpoint_, data, bytes, from.arena.address, from.key, &params));
  return started(operation);
}

kj::Promise<void> UcxChannel::put(RemoteWait wait, std::shared_ptr<const RegisteredMemory> from,
                                  uint64_t bytes, uint64_t key) {
  const Learned& to = find(key, bytes, *from);
  if (!fault_.empty()) return faultOf(wait);
  const std::byte* const data = from->data();
  Operation& operation = begin(std::move(wait), std::move(from));
  ucp_request_param_t params = paramsOf(operation);
  count(operation, ucx_.put_nbx(endpoint_, data, bytes, to.arena.address, to.key, &params));
  // A put is complete when `from` may be written again; a flush, when the other end has the values.
  params.op_attr_mask &= ~static_cast<uint32_t>(UCP_OP_ATTR_FIELD_MEMH);
  if (operation.status == UCS_OK) count(operation, ucx_.ep_flush_nbx(endpoint_, &params));
  return started(operation);
}

kj::Promise<void> UcxChannel::started(Operation& operation) {
  auto pair = kj::newPromiseAndFulfiller<void>();
  operation.waiting = kj::mv(pair.fulfiller);
  progress();
  if (!is_polled_ && !operations_.empty()) beforeSleep();
  startTicking();
  return kj::mv(pair.promise);
}

bool UcxChannel::progress() {
  bool is_any = false;
  for (int round = 0; round < kRoundsMax && ucx_.worker_progress(worker_) != 0; ++round)
    is_any = true;
  const bool is_answered = settle();
  return is_answered || (is_any && fault_.empty());
}

// UCX's descriptor shows the events after a successful worker_arm() alone. Returns true if there
// are events already. After a fault nobody awaits any, and UCX's shared memory, which retries for
// ever what a dead peer doesn't take, always has some.
bool UcxChannel::beforeSleep() {
  if (!fault_.empty()) return settle();
  for (int round = 0; round < kRoundsMax; ++round) {
    if (ucx_.worker_arm(worker_) != UCS_ERR_BUSY) return settle();
    progress();
  }
  return true;
}

// Answers the operations that are complete, and all once the connection is broken.
bool UcxChannel::settle() {
  bool is_any = false;
  if (broken_ != UCS_OK && fault_.empty())
    fault_ = fmt::format("the other end is gone: {}", ucx_.status_string(broken_));
  const TimePoint now = loop_.clock().now();
  for (auto next = operations_.begin(); next != operations_.end();) {
    const auto each = next++;
    if (each->waiting.get() != nullptr && each->pending > 0 && fault_.empty() && now >= each->until)
      fault_ = fmt::format("waited {:.1f} s for it", toSeconds(each->wait.deadline));
    if (each->pending > 0) continue;
    if (each->status != UCS_OK && fault_.empty()) fault_ = ucx_.status_string(each->status);
    if (each->waiting.get() != nullptr && each->status == UCS_OK) {
      each->waiting->fulfill();
      is_any = true;
      operations_.erase(each);
    } else if (each->waiting.get() == nullptr) {
      operations_.erase(each);
    }
  }
  if (!fault_.empty() && rejectAll()) is_any = true;
  return is_any;
}

// Returns whether anyone awaited them. Operations that UCX has not completed stay in the list, for
// its callbacks: they are no work for the loop, and UCX may complete them only when it closes.
bool UcxChannel::rejectAll() {
  bool is_any = false;
  for (Operation& each : operations_) {
    if (each.waiting.get() == nullptr) continue;
    std::exchange(each.waiting, nullptr)->reject(faultOf(each.wait));
    is_any = true;
  }
  std::erase_if(operations_, [](const Operation& each) { return each.pending == 0; });
  return is_any;
}

bool UcxChannel::isAnyAwaited() const {
  return std::ranges::any_of(operations_,
                             [](const Operation& each) { return each.waiting.get() != nullptr; });
}

void UcxChannel::startTicking() {
  if (is_ticking_ || !isAnyAwaited()) return;
  is_ticking_ = true;
  ticking_ = tick().eagerlyEvaluate([](kj::Exception&&) {});
}

kj::Promise<void> UcxChannel::tick() {
  return loop_.timer().afterDelay(kTick).then([this]() -> kj::Promise<void> {
    progress();
    if (isAnyAwaited()) return tick();
    is_ticking_ = false;
    return kj::READY_NOW;
  });
}

}  // namespace

std::unique_ptr<RemoteChannel> RemoteChannel::open(Loop& loop,
                                                   std::shared_ptr<RemoteDomain> domain) {
  DTF_CHECK(domain != nullptr);
  return std::make_unique<UcxChannel>(loop, std::static_pointer_cast<UcxDomain>(std::move(domain)));
}

}  // namespace dtf::net
