#pragma once

// SHA-256 of a stream of bytes, by OpenSSL: the name of a copy on another host, for which nobody
// can make another file. (common/base/checksum.h finds damage, not malice.)

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

struct evp_md_ctx_st;

namespace dtf::launcher {

inline constexpr size_t kSha256HexBytes = 64;

// Owns: its state. Movable; threads: one at a time.
class Sha256 {
 public:
  Sha256();
  void update(std::string_view bytes);
  // 64 hexadecimal digits in lower case, as sha256sum prints them. Begins anew.
  std::string finish();

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  void begin();
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

bool isSha256(std::string_view text);

}  // namespace dtf::launcher
