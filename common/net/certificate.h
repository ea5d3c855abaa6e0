#pragma once

// Certificates and keys as dtf uses them: PEM files of OpenSSL's, and the one name that is in each.

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

// Whom a certificate is for: the URI dtf://JOB/TASK of its subject's alternative names.
struct CertifiedName {
  std::string job;
  std::string task;  // "ps/0", "worker/1"; "client" for who asks and watches; "ca" signs the others
  std::string uri() const { return "dtf://" + job + "/" + task; }
  bool operator==(const CertifiedName&) const = default;
};

inline constexpr const char* kAuthorityTask = "ca";  // of the CA's own certificate

// Whether a certificate may be made out to it.
bool isTaskName(std::string_view task);
// What can stand in an URI as it is: 1 to 128 letters, digits, '.', '_' and '-'.
bool isCertifiedJobName(std::string_view job);

// nullopt: it was not made by dtf.
std::optional<CertifiedName> nameOf(const x509_st& certificate);

// "2027-11-24 10:00 UTC"
std::string endOf(const x509_st& certificate);
std::string startOf(const x509_st& certificate);
bool hasExpired(const x509_st& certificate);
// That it has, and what is to be done. `file`: of this side, where the certificate lies.
std::string expiredAuthorityText(const x509_st& authority, const std::filesystem::path& file);

// `pem` is what a file holds; `file` is for messages.
// Errors: kBadData when there is no key, or no certificate, that OpenSSL can read.
PrivateKey keyOfPem(const std::string& pem, const std::string& file);
Certificate certificateOfPem(const std::string& pem, const std::string& file);

// Errors: kPermission when others may read or write it, with what mends that; kBadData when it
// can't be asked for.
void refuseOpenKey(const std::filesystem::path& file);

// What OpenSSL has to say of the last thing that failed in this thread: "bad signature". Forgets
// it.
std::string openSslText();

}  // namespace dtf::net
