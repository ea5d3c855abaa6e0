#include "common/net/certificate.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <ctime>

#include "common/base/error.h"

namespace dtf::net {

namespace {

constexpr std::string_view kScheme = "dtf://";
constexpr size_t kJobNameMax = 128;

struct FreeBio {
  void operator()(BIO* bio) const { BIO_free(bio); }
};
struct FreeNames {
  void operator()(GENERAL_NAMES* names) const { GENERAL_NAMES_free(names); }
};
using Bio = std::unique_ptr<BIO, FreeBio>;

Bio bioOver(const std::string& pem) {
  return Bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}

std::string dateText(const ASN1_TIME* time) {
  std::tm date{};
  if (time == nullptr || ASN1_TIME_to_tm(time, &date) != 1) return "an unknown date";
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02} UTC", date.tm_year + 1900, date.tm_mon + 1,
                     date.tm_mday, date.tm_hour, date.tm_min);
}

std::optional<CertifiedName> parseUri(std::string_view uri) {
  if (!uri.starts_with(kScheme)) return std::nullopt;
  uri.remove_prefix(kScheme.size());
  const size_t slash = uri.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const std::string_view job = uri.substr(0, slash), task = uri.substr(slash + 1);
  if (!isCertifiedJobName(job) || (task != kAuthorityTask && !isTaskName(task)))
    return std::nullopt;
  return CertifiedName{std::string(job), std::string(task)};
}

// Rejects keys with a passphrase: nobody is there to enter it.
int refusePassphrase(char*, int, int, void*) {
  return -1;
}

}  // namespace

void FreeOpenSsl::operator()(evp_pkey_st* key) const {
  EVP_PKEY_free(key);
}

void FreeOpenSsl::operator()(x509_st* certificate) const {
  X509_free(certificate);
}

bool isTaskName(std::string_view task) {
  if (task == "client") return true;
  const std::string_view job = task.substr(0, task.find('/'));
  if ((job != "ps" && job != "worker") || job.size() == task.size()) return false;
  const std::string_view number = task.substr(job.size() + 1);
  unsigned index = 0;
  const auto [stop, error] = std::from_chars(number.data(), number.data() + number.size(), index);
  const bool is_whole = error == std::errc() && stop == number.data() + number.size();
  return is_whole && number == std::to_string(index);
}

bool isCertifiedJobName(std::string_view job) {
  return !job.empty() && job.size() <= kJobNameMax && std::ranges::all_of(job, [](unsigned char c) {
    return (c < 0x80 && std::isalnum(c)) || c == '.' || c == '_' || c == '-';
  });
}

std::optional<CertifiedName> nameOf(const x509_st& certificate) {
  const std::unique_ptr<GENERAL_NAMES, FreeNames> names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(&certificate, NID_subject_alt_name, nullptr, nullptr)));
  if (names == nullptr) return std::nullopt;
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_URI) continue;
    const ASN1_IA5STRING* uri = name->d.uniformResourceIdentifier;
    return parseUri({reinterpret_cast<const char*>(ASN1_STRING_get0_data(uri)),
                     static_cast<size_t>(ASN1_STRING_length(uri))});
  }
  return std::nullopt;
}

std::string endOf(const x509_st& certificate) {
  return dateText(X509_get0_notAfter(&certificate));
}

std::string startOf(const x509_st& certificate) {
  return dateText(X509_get0_notBefore(&certificate));
}

bool hasExpired(const x509_st& certificate) {
  return X509_cmp_current_time(X509_get0_notAfter(&certificate)) < 0;
}

std::string expiredAuthorityText(const x509_st& authority, const std::filesystem::path& file) {
  return fmt::format(
      "{}, the certificate of the job's CA, expired on {}, and all keys that it has signed with "
      "it: "
      "dtf-launch keys init makes a CA and keys anew, in another folder, for every task",
      file.string(), endOf(authority));
}

PrivateKey keyOfPem(const std::string& pem, const std::string& file) {
  PrivateKey key(PEM_read_bio_PrivateKey(bioOver(pem).get(), nullptr, refusePassphrase, nullptr));
  if (key == nullptr)
    throw Error(ErrorCode::kBadData, file + " has no private key: " + openSslText());
  return key;
}

Certificate certificateOfPem(const std::string& pem, const std::string& file) {
  Certificate certificate(
      PEM_read_bio_X509(bioOver(pem).get(), nullptr, refusePassphrase, nullptr));
  if (certificate == nullptr)
    throw Error(ErrorCode::kBadData, file + " has no certificate: " + openSslText());
  return certificate;
}

void refuseOpenKey(const std::filesystem::path& file) {
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0)
    throw Error(ErrorCode::kBadData, file.string() + ": " + errnoText(errno));
  if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    throw Error(ErrorCode::kPermission,
                fmt::format("{} can be read by others (mode {:04o}): chmod 600 {}", file.string(),
                            status.st_mode & 07777, file.string()));
}

std::string openSslText() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  const char* reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  return reason == nullptr ? "OpenSSL gives no reason" : reason;
}

}  // namespace dtf::net
