#include "common/net/key_folder.h"

#include <fmt/format.h>
#include <openssl/asn1.h>
#include <openssl/bn.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/file.h"
#include "common/base/file_system.h"
#include "common/net/tls_keys.h"

namespace dtf::net {

namespace fs = std::filesystem;

namespace {

constexpr uint64_t kKeyFileBytesMax = 64 << 10;
constexpr int kSerialBits = 127;

struct FreeKeyBio {
  void operator()(BIO* bio) const { BIO_free(bio); }
};
using MemoryBio = std::unique_ptr<BIO, FreeKeyBio>;

[[noreturn]] void failOpenSsl(const std::string& what) {
  throw Error(ErrorCode::kInternal, what + ": " + openSslText());
}

PrivateKey newKey() {
  PrivateKey key(EVP_EC_gen("P-256"));
  if (key == nullptr) failOpenSsl("cannot make a key");
  return key;
}

void setSerial(X509& certificate) {
  const std::unique_ptr<BIGNUM, decltype(&BN_free)> number(BN_new(), &BN_free);
  if (number == nullptr ||
      BN_rand(number.get(), kSerialBits, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) != 1 ||
      BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(&certificate)) == nullptr)
    failOpenSsl("cannot make a serial number");
}

void addName(X509_NAME* name, const char* field, const std::string& value) {
  if (X509_NAME_add_entry_by_txt(name, field, MBSTRING_ASC,
                                 reinterpret_cast<const unsigned char*>(value.data()),
                                 static_cast<int>(value.size()), -1, 0) != 1)
    failOpenSsl("cannot name a certificate");
}

void addExtension(X509& certificate, X509& issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, &issuer, &certificate, nullptr, nullptr, 0);
  const std::unique_ptr<X509_EXTENSION, decltype(&X509_EXTENSION_free)> extension(
      X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()), &X509_EXTENSION_free);
  if (extension == nullptr || X509_add_ext(&certificate, extension.get(), -1) != 1)
    failOpenSsl("cannot extend a certificate by " + value);
}

// Makes a certificate without extensions and signature. `issuer` null: self-issued.
Certificate startCertificate(const CertifiedName& name, EVP_PKEY& key, const X509* issuer,
                             const Validity& validity) {
  Certificate certificate(X509_new());
  if (certificate == nullptr || X509_set_version(certificate.get(), X509_VERSION_3) != 1)
    failOpenSsl("cannot make a certificate");
  setSerial(*certificate);
  X509_NAME* subject = X509_get_subject_name(certificate.get());
  addName(subject, "CN", name.task);
  X509_set_issuer_name(certificate.get(),
                       issuer == nullptr ? subject : X509_get_subject_name(issuer));
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), validity.from.count());
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), validity.until.count());
  if (X509_set_pubkey(certificate.get(), &key) != 1) failOpenSsl("cannot make a certificate");
  return certificate;
}

std::string pemOf(X509& certificate) {
  const MemoryBio bio(BIO_new(BIO_s_mem()));
  if (bio == nullptr || PEM_write_bio_X509(bio.get(), &certificate) != 1)
    failOpenSsl("cannot write a certificate");
  char* data = nullptr;
  const long bytes = BIO_get_mem_data(bio.get(), &data);
  return {data, static_cast<size_t>(bytes)};
}

std::string pemOf(EVP_PKEY& key) {
  const MemoryBio bio(BIO_new(BIO_s_secmem()));
  if (bio == nullptr ||
      PEM_write_bio_PrivateKey(bio.get(), &key, nullptr, nullptr, 0, nullptr, nullptr) != 1)
    failOpenSsl("cannot write a key");
  char* data = nullptr;
  const long bytes = BIO_get_mem_data(bio.get(), &data);
  return {data, static_cast<size_t>(bytes)};
}

// Writes the file with mode 0600 from the start: it is never readable by others.
void replaceFile(const fs::path& file, const std::string& pem) {
  const fs::path temporary = file.string() + ".new";
  ::unlink(temporary.c_str());  // left by a process that was killed
  FileSystem& disk = realFileSystem();
  const std::unique_ptr<WritableFile> out = disk.create(temporary);
  out->write(pem.data(), pem.size());
  out->sync();
  out->close();
  disk.rename(temporary, file);
  disk.syncFolder(file.parent_path());
}

// Rejects a folder with files: they may be a CA's.
void refuseFilled(const fs::path& folder) {
  std::error_code error;
  if (fs::exists(folder / kAuthorityFile, error))
    throw Error(ErrorCode::kUsage, folder.string() +
                                       " has a CA already: keys issue makes keys "
                                       "with it, keys renew new ones");
  if (fs::exists(folder, error) && !fs::is_empty(folder, error) && !error)
    throw Error(
        ErrorCode::kUsage,
        folder.string() + " is not empty: keys init makes a folder of its own; name another");
  if (error) failWrite(folder, error.value());
}

// Makes a folder for this user alone, beside `folder`.
fs::path makeFolderBeside(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder.parent_path(), error);
  if (error) failWrite(folder, error.value());
  std::string pattern = (folder.parent_path() / ".new-keys-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) failWrite(folder, errno);  // it is 0700
  return pattern;
}

bool isHostName(const std::string& host) {
  return !host.empty() && host.size() <= 253 && std::ranges::all_of(host, [](unsigned char c) {
    return (c < 0x80 && std::isalnum(c)) || c == '.' || c == '-' || c == ':' || c == '_';
  });
}

// Returns OpenSSL's configuration text: "URI:dtf://job/ps/0,DNS:host".
std::string alternativeNames(const CertifiedName& name, const std::string& host) {
  const std::string uri = "URI:" + name.uri();
  if (host.empty()) return uri;
  if (!isHostName(host)) throw Error(ErrorCode::kUsage, "'" + host + "' is not a host name");
  const std::unique_ptr<ASN1_OCTET_STRING, decltype(&ASN1_OCTET_STRING_free)> address(
      a2i_IPADDRESS(host.c_str()), &ASN1_OCTET_STRING_free);
  (void)openSslText();  // clears the error for a name, which is no address
  return uri + (address != nullptr ? ",IP:" : ",DNS:") + host;
}

// Returns the host in a certificate of alternativeNames().
std::string hostOf(const X509& certificate) {
  const std::unique_ptr<GENERAL_NAMES, decltype(&GENERAL_NAMES_free)> names(
      static_cast<GENERAL_NAMES*>(
          X509_get_ext_d2i(&certificate, NID_subject_alt_name, nullptr, nullptr)),
      &GENERAL_NAMES_free);
  for (int i = 0; names != nullptr && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type == GEN_DNS)
      return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(name->d.dNSName)),
              static_cast<size_t>(ASN1_STRING_length(name->d.dNSName))};
    if (name->type != GEN_IPADD) continue;
    const unsigned char* bytes = ASN1_STRING_get0_data(name->d.iPAddress);
    if (ASN1_STRING_length(name->d.iPAddress) == 4)
      return fmt::format("{}.{}.{}.{}", bytes[0], bytes[1], bytes[2], bytes[3]);
    std::string text;
    for (int at = 0; at < ASN1_STRING_length(name->d.iPAddress); at += 2)
      text += fmt::format("{}{:x}", at == 0 ? "" : ":", bytes[at] << 8 | bytes[at + 1]);
    return text;
  }
  return {};
}

KeyInFolder describe(const X509& certificate, const CertifiedName& name, const fs::path& file) {
  return {name, file.filename().string(), startOf(certificate), endOf(certificate),
          hasExpired(certificate)};
}

CertifiedName nameIn(const X509& certificate, const fs::path& file) {
  const std::optional<CertifiedName> name = nameOf(certificate);
  if (!name) throw Error(ErrorCode::kBadData, file.string() + " was not made by dtf-launch keys");
  return *name;
}

Certificate readCertificate(const fs::path& file) {
  return certificateOfPem(readFile(file, kKeyFileBytesMax), file.string());
}

}  // namespace

KeyFolder KeyFolder::create(const fs::path& folder, const std::string& job,
                            const Validity& validity,
                            const std::function<void(KeyFolder& made)>& fill) {
  if (!isCertifiedJobName(job))
    throw Error(ErrorCode::kUsage,
                "'" + job +
                    "' can't name a job in a certificate: 1 to 128 letters, digits, '.', "
                    "'_' and '-' can");
  const fs::path named = fs::absolute(folder).lexically_normal();
  const fs::path place =
      // the target of a link
      fs::weakly_canonical(named.has_filename() ? named : named.parent_path());
  refuseFilled(place);
  const fs::path unnamed = makeFolderBeside(place);
  try {
    makeAuthority(unnamed, job, validity);
    KeyFolder made(unnamed);
    if (fill) fill(made);
    realFileSystem().rename(unnamed, place);
    realFileSystem().syncFolder(place.parent_path());
  } catch (const Error&) {
    std::error_code ignored;
    fs::remove_all(unnamed, ignored);
    throw;
  }
  return KeyFolder(folder);
}

void KeyFolder::makeAuthority(const fs::path& folder, const std::string& job,
                              const Validity& validity) {
  const PrivateKey key = newKey();
  const CertifiedName name{job, kAuthorityTask};
  const Certificate ca = startCertificate(name, *key, nullptr, validity);
  addExtension(*ca, *ca, NID_basic_constraints, "critical,CA:TRUE,pathlen:0");
  addExtension(*ca, *ca, NID_key_usage, "critical,keyCertSign,cRLSign");
  addExtension(*ca, *ca, NID_subject_key_identifier, "hash");
  addExtension(*ca, *ca, NID_subject_alt_name, "URI:" + name.uri());
  if (X509_sign(ca.get(), key.get(), EVP_sha256()) == 0) failOpenSsl("cannot sign the CA");
  replaceFile(folder / kAuthorityKeyFile, pemOf(*key));
  replaceFile(folder / kAuthorityFile, pemOf(*ca));
}

KeyFolder::KeyFolder(fs::path folder) : folder_(std::move(folder)) {
  const fs::path file = folder_ / kAuthorityFile;
  if (!fs::exists(file))
    throw Error(ErrorCode::kBadData, folder_.string() + " has no " + kAuthorityFile +
                                         ": dtf-launch keys init " + folder_.string() +
                                         " makes it");
  job_ = nameIn(*readCertificate(file), file).job;
}

KeyInFolder KeyFolder::sign(const CertifiedName& name, const std::string& names,
                            const Validity& validity) {
  const fs::path authority_key = folder_ / kAuthorityKeyFile;
  if (!fs::exists(authority_key))
    throw Error(ErrorCode::kBadData, authority_key.string() +
                                         " is missing: keys can only be made "
                                         "where the CA's key is");
  refuseOpenKey(authority_key);
  const Certificate ca = readCertificate(folder_ / kAuthorityFile);
  if (hasExpired(*ca))
    throw Error(ErrorCode::kBadConfig, expiredAuthorityText(*ca, folder_ / kAuthorityFile));
  const PrivateKey ca_key =
      keyOfPem(readFile(authority_key, kKeyFileBytesMax), authority_key.string());
  const PrivateKey key = newKey();
  const Certificate certificate = startCertificate(name, *key, ca.get(), validity);
  addExtension(*certificate, *ca, NID_basic_constraints, "critical,CA:FALSE");
  addExtension(*certificate, *ca, NID_key_usage, "critical,digitalSignature");
  addExtension(*certificate, *ca, NID_ext_key_usage, "serverAuth,clientAuth");
  addExtension(*certificate, *ca, NID_subject_key_identifier, "hash");
  addExtension(*certificate, *ca, NID_authority_key_identifier, "keyid:always");
  addExtension(*certificate, *ca, NID_subject_alt_name, names);
  if (X509_sign(certificate.get(), ca_key.get(), EVP_sha256()) == 0)
    failOpenSsl("cannot sign a certificate");
  const fs::path file = folder_ / keyFileOf(name.task);
  replaceFile(file, pemOf(*key) + pemOf(*certificate));
  return describe(*certificate, name, file);
}

KeyInFolder KeyFolder::issue(const std::string& task, const std::string& host,
                             const Validity& validity) {
  if (!isTaskName(task))
    throw Error(ErrorCode::kUsage,
                "'" + task + "' is not a task: name ps/0, worker/1 and so on, or client");
  const CertifiedName name{job_, task};
  return sign(name, alternativeNames(name, host), validity);
}

std::vector<KeyInFolder> KeyFolder::renew(const Validity& validity) {
  std::vector<KeyInFolder> renewed;
  for (const std::string& file : keyFiles()) {
    const Certificate old = readCertificate(folder_ / file);
    const CertifiedName name = nameIn(*old, folder_ / file);
    renewed.push_back(sign(name, alternativeNames(name, hostOf(*old)), validity));
  }
  return renewed;
}

std::vector<KeyInFolder> KeyFolder::list() const {
  std::vector<std::string> files = keyFiles();
  files.insert(files.begin(), kAuthorityFile);
  std::vector<KeyInFolder> keys;
  for (const std::string& file : files) {
    const Certificate certificate = readCertificate(folder_ / file);
    keys.push_back(describe(*certificate, nameIn(*certificate, folder_ / file), file));
  }
  return keys;
}

// Returns the files of tasks, sorted.
std::vector<std::string> KeyFolder::keyFiles() const {
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(folder_)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(".pem") && name != kAuthorityFile && name != kAuthorityKeyFile)
      files.push_back(name);
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace dtf::net
