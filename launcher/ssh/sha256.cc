#include "launcher/ssh/sha256.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>

#include "common/base/check.h"

namespace dtf::launcher {

void Sha256::Free::operator()(evp_md_ctx_st* context) const {
  EVP_MD_CTX_free(context);
}

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  DTF_CHECK(context_ != nullptr);
  begin();
}

void Sha256::begin() {
  DTF_CHECK(EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1);
}

void Sha256::update(std::string_view bytes) {
  DTF_CHECK(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1);
}

std::string Sha256::finish() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int bytes = 0;
  DTF_CHECK(EVP_DigestFinal_ex(context_.get(), digest.data(), &bytes) == 1);
  begin();
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  for (unsigned int i = 0; i < bytes; ++i) {
    hex += kDigits[digest[i] >> 4];
    hex += kDigits[digest[i] & 0xF];
  }
  DTF_CHECK(hex.size() == kSha256HexBytes);
  return hex;
}

bool isSha256(std::string_view text) {
  return text.size() == kSha256HexBytes && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

}  // namespace dtf::launcher
