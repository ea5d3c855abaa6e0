#pragma once

// Certificates and keys: OpenSSL's PEM files, and the name in each certificate.

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

// OpenSSL's own types, without its headers.
struct evp_pkey_st;
struct x509_st;

namespace dtf::net {

struct FreeOpenSsl {
  void operator()(evp_pkey_st* key) const;
  void operator()(x509_st* certificate) const;
};
using PrivateKey = std::unique_ptr<evp_pkey_st, FreeOpenSsl>;
using Certificate = std::unique_ptr<x509_st, FreeOpenSsl>;

// The owner of a certificate: the URI dtf://JOB/TASK in its subject's alternative names.
struct CertifiedName {
  std::string job;
  // "ps/0", "worker/1"; "client" for programs that query and watch; "ca" signs the others
  std::string task;
  std::string uri() const { return "dtf://" + job + "/" + task; }
  bool operator==(const CertifiedName&) const = default;
};

inline constexpr const char* kAuthorityTask = "ca";  // in the CA's own certificate

// Returns whether a certificate may have this task.
bool isTaskName(std::string_view task);
// Returns whether `job` can stand in a URI unescaped: 1 to 128 letters, digits, '.', '_' and '-'.
bool isCertifiedJobName(std::string_view job);

// Returns nullopt if dtf didn't make the certificate.
std::optional<CertifiedName> nameOf(const x509_st& certificate);

// Returns "2027-11-24 10:00 UTC".
std::string endOf(const x509_st& certificate);
std::string startOf(const x509_st& certificate);
bool hasExpired(const x509_st& certificate);
// Returns the message for an expired CA, with the remedy. `file`: this side's copy of the
// certificate.
std::string expiredAuthorityText(const x509_st& authority, const std::filesystem::path& file);

// `pem` is the content of a file; `file` names it in messages.
// Errors: kBadData if OpenSSL can't read a key or a certificate in it.
PrivateKey keyOfPem(const std::string& pem, const std::string& file);
Certificate certificateOfPem(const std::string& pem, const std::string& file);

// Errors: kPermission if other users may read or write the file, with the remedy; kBadData if its
// mode can't be read.
void refuseOpenKey(const std::filesystem::path& file);

// Returns OpenSSL's reason for the last failure in this thread, such as "bad signature", and clears
// it.
std::string openSslText();

}  // namespace dtf::net
