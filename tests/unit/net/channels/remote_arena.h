#pragma once

// Registered memory for tests, and the transports of UCX that they choose.

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/net/channels/remote_memory.h"
#include "tests/support/shared_memory_space.h"

namespace dtf::net {

inline constexpr size_t kBytes = size_t{3} << 20;
inline constexpr uint64_t kKey = 7;

// Chooses the transports for the next domain: each is made with the environment of its time.
class UcxTransports {
 public:
  explicit UcxTransports(const std::string& transports) {
    ::setenv("UCX_TLS", transports.c_str(), 1);
  }
  ~UcxTransports() { ::unsetenv("UCX_TLS"); }
};

// The reason why this process can't use these transports of UCX; empty: it can.
inline std::string absence(const std::string& transports = "tcp") {
  const UcxTransports tcp("tcp");
  try {
    RemoteDomain::open();
  } catch (const Error& error) {
    return error.message();
  }
  return dtf::testing::lackOfSharedMemory(transports);
}

// Bytes that several may hold.
class Memory {
 public:
  explicit Memory(size_t bytes) : words_(bytes / sizeof(uint64_t)) {}
  template <class T>
  T* as() {
    return reinterpret_cast<T*>(words_.data());
  }
  std::byte* data() { return as<std::byte>(); }
  size_t bytes() const { return words_.size() * sizeof(uint64_t); }

 private:
  std::vector<uint64_t> words_;
};

struct Arena {
  explicit Arena(RemoteDomain& domain, size_t bytes = kBytes)
      : buffer(std::make_shared<Memory>(bytes)),
        registered(
            domain.registered({buffer->as<std::byte>(), bytes}, buffer, RemoteAccess::kWrite)) {}
  RemoteArena named(uint64_t key) const {
    RemoteArena arena = registered->arena();
    arena.key = key;
    return arena;
  }
  std::shared_ptr<Memory> buffer;
  std::shared_ptr<const RegisteredMemory> registered;
};

}  // namespace dtf::net
