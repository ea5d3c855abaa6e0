#pragma once

// The domain of a build with UCX, for channels: see remote_memory.h.

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "common/base/mutex.h"
#include "common/net/channels/remote_memory.h"
#include "common/net/channels/ucx_library.h"

namespace dtf::net {

// UCX's context.
// Threads: thread-safe: UCX is told that several threads have workers of it.
struct UcxContext {
  // Errors: kBadConfig with UCX's reason.
  UcxContext();
  ~UcxContext();
  UcxContext(const UcxContext&) = delete;
  UcxContext& operator=(const UcxContext&) = delete;

  const UcxLibrary& ucx;
  std::string transports;  // as UCX_TLS
  ucp_context_h handle = nullptr;
};

class UcxMemory final : public RegisteredMemory {
 public:
  // Errors: kUnavailable with UCX's reason.
  UcxMemory(std::shared_ptr<UcxContext> context, std::span<std::byte> memory,
            std::shared_ptr<const void> owner, RemoteAccess access);
  ~UcxMemory() override;
  UcxMemory(const UcxMemory&) = delete;
  UcxMemory& operator=(const UcxMemory&) = delete;

  std::byte* data() const override { return memory_.data(); }
  size_t bytes() const override { return memory_.size(); }
  const RemoteArena& arena() const override { return arena_; }
  ucp_mem_h handle() const { return handle_; }
  // Returns whether nobody else holds the memory.
  bool isUnused() const { return owner_.use_count() == 1; }

 private:
  void packCardKey();

  const std::shared_ptr<UcxContext> context_;
  const std::span<std::byte> memory_;
  const std::shared_ptr<const void> owner_;
  ucp_mem_h handle_ = nullptr;
  RemoteArena arena_;
};

class UcxDomain final : public RemoteDomain {
 public:
  UcxDomain() : context_(std::make_shared<UcxContext>()) {}

  std::shared_ptr<const RegisteredMemory> registered(std::span<std::byte> memory,
                                                     std::shared_ptr<const void> owner,
                                                     RemoteAccess access) override;
  std::string text() const override;
  std::string version() const override { return context_->ucx.get_version_string(); }
  size_t TEST_registrations() const override;

  const std::shared_ptr<UcxContext>& context() const { return context_; }

 private:
  const std::shared_ptr<UcxContext> context_;
  mutable Mutex mu_;
  using Key = std::pair<const std::byte*, RemoteAccess>;
  std::map<Key, std::shared_ptr<const UcxMemory>> memories_ DTF_GUARDED_BY(mu_);
};

}  // namespace dtf::net
