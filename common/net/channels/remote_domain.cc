#include <fmt/format.h>

#include <cstdlib>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/net/channels/ucx_domain.h"

namespace dtf::net {

namespace {

// Without UCX_TLS: InfiniBand and RoCE, in all their forms. No software stands in for a card.
constexpr const char* kCardsAlone = "ib";

unsigned protectionOf(RemoteAccess access) {
  constexpr unsigned kLocal = UCP_MEM_MAP_PROT_LOCAL_READ | UCP_MEM_MAP_PROT_LOCAL_WRITE;
  switch (access) {
    case RemoteAccess::kNone:
      return kLocal;
    case RemoteAccess::kRead:
      return kLocal | UCP_MEM_MAP_PROT_REMOTE_READ;
    case RemoteAccess::kWrite:
      return kLocal | UCP_MEM_MAP_PROT_REMOTE_WRITE;
  }
  return kLocal;
}

// Frees the configuration on every way out.
struct Config {
  explicit Config(const UcxLibrary& of) : ucx(of) {
    if (const ucs_status_t status = ucx.config_read(nullptr, nullptr, &handle); status != UCS_OK)
      throw Error(ErrorCode::kBadConfig,
                  fmt::format("UCX can't read its settings (UCX_* in the environment): {}",
                              ucx.status_string(status)));
  }
  ~Config() { ucx.config_release(handle); }
  Config(const Config&) = delete;
  Config& operator=(const Config&) = delete;

  const UcxLibrary& ucx;
  ucp_config_t* handle = nullptr;
};

}  // namespace

UcxContext::UcxContext() : ucx(UcxLibrary::open()) {
  const Config config(ucx);
  const char* const set = std::getenv("UCX_TLS");
  transports = set != nullptr ? set : kCardsAlone;
  if (set == nullptr) {
    const ucs_status_t limited = ucx.config_modify(config.handle, "TLS", kCardsAlone);
    if (limited != UCS_OK)
      throw Error(ErrorCode::kBadConfig,
                  fmt::format("'transport: rdma': UCX {} can't be limited to cards: {}; set "
                              "UCX_TLS={} in the environment of the tasks",
                              ucx.get_version_string(), ucx.status_string(limited), kCardsAlone));
  }
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_MT_WORKERS_SHARED;
  params.features = UCP_FEATURE_RMA | UCP_FEATURE_WAKEUP;
  params.mt_workers_shared = 1;
  const ucs_status_t status =
      ucx.init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, config.handle, &handle);
  if (status == UCS_OK) return;
  throw Error(
      ErrorCode::kBadConfig,
      fmt::format(
          "'transport: rdma': UCX finds nothing on this host to move memory with (UCX_TLS={}"
          "): {}; {}",
          transports, ucx.status_string(status),
          set == nullptr ? "a network card with RDMA is needed. UCX_TLS=tcp in the "
                           "environment tries the calls without one; or remove 'transport' "
                           "from the cluster file"
                         : "`ucx_info -d` lists the transports of this host"));
}

UcxContext::~UcxContext() {
  ucx.cleanup(handle);
}

UcxMemory::UcxMemory(std::shared_ptr<UcxContext> context, std::span<std::byte> memory,
                     std::shared_ptr<const void> owner, RemoteAccess access)
    : context_(std::move(context)), memory_(memory), owner_(std::move(owner)) {
  DTF_CHECK(!memory_.empty() && owner_ != nullptr);
  ucp_mem_map_params_t params{};
  params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH |
                      UCP_MEM_MAP_PARAM_FIELD_PROT;
  params.prot = protectionOf(access);
  params.address = memory_.data();
  params.length = memory_.size();
  const ucs_status_t status = context_->ucx.mem_map(context_->handle, &params, &handle_);
  if (status != UCS_OK)
    throw Error(
        ErrorCode::kUnavailable,
        fmt::format("cannot register {} bytes of memory for RDMA: {}; raise `ulimit -l`, the "
                    "memory that a process may lock",
                    memory_.size(), context_->ucx.status_string(status)));
  packCardKey();
}

void UcxMemory::packCardKey() {
  void* packed = nullptr;
  size_t bytes = 0;
  const ucs_status_t status = context_->ucx.rkey_pack(context_->handle, handle_, &packed, &bytes);
  if (status != UCS_OK || bytes > kCardKeyBytesMax) {
    if (status == UCS_OK) context_->ucx.rkey_buffer_release(packed);
    context_->ucx.mem_unmap(context_->handle, handle_);
    throw Error(
        ErrorCode::kUnavailable,
        fmt::format("cannot make the card key of registered memory: {}",
                    status != UCS_OK ? context_->ucx.status_string(status) : "it is too large"));
  }
  const auto* const first = static_cast<const std::byte*>(packed);
  arena_ = {.address = reinterpret_cast<uint64_t>(memory_.data()),
            .bytes = memory_.size(),
            .card_key = {first, first + bytes}};
  context_->ucx.rkey_buffer_release(packed);
}

UcxMemory::~UcxMemory() {
  context_->ucx.mem_unmap(context_->handle, handle_);
}

std::shared_ptr<const RegisteredMemory> UcxDomain::registered(std::span<std::byte> memory,
                                                              std::shared_ptr<const void> owner,
                                                              RemoteAccess access) {
  MutexLock lock(mu_);
  std::erase_if(memories_, [](const auto& entry) {
    return entry.second.use_count() == 1 && entry.second->isUnused();
  });
  // An entry holds its memory, so no other memory has its address.
  std::shared_ptr<const UcxMemory>& found = memories_[{memory.data(), access}];
  if (found == nullptr || found->bytes() < memory.size()) {
    try {
      found = std::make_shared<const UcxMemory>(context_, memory, std::move(owner), access);
    } catch (...) {
      if (found == nullptr) memories_.erase({memory.data(), access});
      throw;
    }
  }
  return found;
}

std::string UcxDomain::text() const {
  return fmt::format("UCX {}, UCX_TLS={}", context_->ucx.get_version_string(),
                     context_->transports);
}

size_t UcxDomain::TEST_registrations() const {
  MutexLock lock(mu_);
  return memories_.size();
}

std::shared_ptr<RemoteDomain> RemoteDomain::open() {
  static Mutex mu;
  static std::weak_ptr<RemoteDomain> opened;
  MutexLock lock(mu);
  std::shared_ptr<RemoteDomain> domain = opened.lock();
  if (domain == nullptr) opened = domain = std::make_shared<UcxDomain>();
  return domain;
}

}  // namespace dtf::net
