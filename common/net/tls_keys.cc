#include "common/net/tls_keys.h"

#include <fmt/format.h>
#include <openssl/ssl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/net/certificate.h"

namespace dtf::net {

namespace {

constexpr uint64_t kPemBytesMax = 64 << 10;
// AES with 128 bits first: with the processors' instructions it is the fastest.
constexpr const char* kCipherSuites =
    "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256";

std::string readPem(const std::filesystem::path& file) {
  // If the file's existence is unknown, readFile() reports why.
  if (std::error_code problem; !std::filesystem::exists(file, problem) && !problem)
    throw Error(ErrorCode::kBadData,
                file.string() + " is missing: dtf-launch keys makes it, copy it here");
  return readFile(file, kPemBytesMax);
}

}  // namespace

// Detects that a file was replaced or written.
struct TlsKeys::Stamp {
  struct OfFile {
    uint64_t inode = 0;
    int64_t seconds = 0;
    int64_t nanoseconds = 0;
    int64_t bytes = -1;
    bool operator==(const OfFile&) const = default;
  };
  std::array<OfFile, 2> files;
  bool operator==(const Stamp&) const = default;
};

// One state of the files.
// Owns: the context that sessions are made from.
class TlsKeys::Loaded {
 public:
  Loaded(const std::string& authority, const std::string& key_file, const std::string& pem,
         const std::string& authority_file)
      : context_(SSL_CTX_new(TLS_method())) {
    DTF_CHECK(context_ != nullptr);
    SSL_CTX* context = context_.get();
    SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
    SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION);
    DTF_CHECK(SSL_CTX_set_ciphersuites(context, kCipherSuites) == 1);
    // No resumption: a client that reconnects presents its certificate again.
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_num_tickets(context, 0);
    SSL_CTX_set_options(context, SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                  SSL_MODE_RELEASE_BUFFERS | SSL_MODE_NO_AUTO_CHAIN);
    SSL_CTX_set_read_ahead(context, 1);
    const Certificate ca = certificateOfPem(authority, authority_file);
    const Certificate own = certificateOfPem(pem, key_file);
    const PrivateKey key = keyOfPem(pem, key_file);
    trust(*ca, authority_file);
    check(*ca, *own, key_file);
    if (hasExpired(*ca))
      throw Error(ErrorCode::kBadConfig, expiredAuthorityText(*ca, authority_file));
    if (hasExpired(*own))
      throw Error(ErrorCode::kBadConfig,
                  fmt::format("{} expired on {}: dtf-launch keys renew {}", key_file, endOf(*own),
                              std::filesystem::path(key_file).parent_path().string()));
    if (SSL_CTX_use_certificate(context, own.get()) != 1 ||
        SSL_CTX_use_PrivateKey(context, key.get()) != 1)
      throw Error(
          ErrorCode::kBadData,
          key_file + " holds a key and a certificate that don't belong together: " + openSslText());
  }
  SSL_CTX* context() const { return context_.get(); }
  const CertifiedName& name() const { return name_; }

 private:
  struct FreeContext {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  };

  void trust(X509& ca, const std::string& file) {
    if (X509_STORE_add_cert(SSL_CTX_get_cert_store(context_.get()), &ca) != 1 ||
        SSL_CTX_add_client_CA(context_.get(), &ca) != 1)
      throw Error(ErrorCode::kBadData, file + " can't be used as a CA: " + openSslText());
  }

  void check(X509& ca, X509& own, const std::string& file) {
    const std::optional<CertifiedName> name = nameOf(own);
    if (!name) throw Error(ErrorCode::kBadConfig, file + " names no task of a job");
    if (X509_verify(&own, X509_get0_pubkey(&ca)) != 1) {
      (void)openSslText();
      throw Error(ErrorCode::kBadConfig, file + " is not signed by the CA in the same folder");
    }
    name_ = *name;
  }

  const std::unique_ptr<SSL_CTX, FreeContext> context_;
  CertifiedName name_;
};

std::string keyFileOf(const std::string& task) {
  std::string name = task;
  std::replace(name.begin(), name.end(), '/', '-');
  return name + ".pem";
}

TlsKeys::TlsKeys(std::filesystem::path folder, std::string task, const std::string& job)
    : folder_(std::move(folder)), task_(std::move(task)) {
  auto stamp = std::make_unique<Stamp>(this->stamp());
  const std::shared_ptr<const Loaded> loaded = load();
  job_ = loaded->name().job;
  if (!job.empty() && job != job_)
    throw Error(ErrorCode::kBadConfig,
                fmt::format("the keys in {} are of job '{}', but this is job '{}'",
                            folder_.string(), job_, job));
  MutexLock lock(mu_);
  loaded_ = loaded;
  read_at_ = std::move(stamp);
}

TlsKeys::~TlsKeys() = default;

std::shared_ptr<const TlsKeys::Loaded> TlsKeys::load() const {
  const std::filesystem::path key = folder_ / keyFileOf(task_);
  const std::filesystem::path authority = folder_ / kAuthorityFile;
  const std::string pem = readPem(key);
  refuseOpenKey(key);
  auto loaded =
      std::make_shared<const Loaded>(readPem(authority), key.string(), pem, authority.string());
  if (loaded->name().task != task_)
    throw Error(ErrorCode::kBadConfig, fmt::format("{} is for {}, but this task is {}",
                                                   key.string(), loaded->name().task, task_));
  if (!job_.empty() && loaded->name().job != job_)
    throw Error(ErrorCode::kBadConfig, fmt::format("{} is of job '{}', but this job is '{}'",
                                                   key.string(), loaded->name().job, job_));
  return loaded;
}

TlsKeys::Stamp TlsKeys::stamp() const {
  Stamp stamp;
  const std::filesystem::path names[] = {folder_ / kAuthorityFile, folder_ / keyFileOf(task_)};
  for (size_t i = 0; i < stamp.files.size(); ++i) {
    struct stat status {};
    if (::stat(names[i].c_str(), &status) != 0) continue;
    // The time of the last change of any kind: after a chmod, a file that others could read is read
    // again.
    stamp.files[i] = {status.st_ino, status.st_ctim.tv_sec, status.st_ctim.tv_nsec, status.st_size};
  }
  return stamp;
}

std::shared_ptr<const TlsKeys::Loaded> TlsKeys::current() {
  const Stamp now = stamp();  // before reading: later changes are seen next time
  MutexLock lock(mu_);
  if (now == *read_at_) return loaded_;
  *read_at_ = now;
  try {
    loaded_ = load();
    log::info("event=keys_renewed folder=\"{}\"", folder_.string());
  } catch (const std::exception& error) {  // what() of an Error is its message
    log::warning("event=keys_not_renewed reason=\"{}\"", error.what());
  }
  return loaded_;
}

std::unique_ptr<TlsSession> TlsKeys::accept(int fd) {
  return std::make_unique<TlsSession>(current()->context(), fd, TlsSession::Side::kServer, job_, "",
                                      folder_);
}

std::unique_ptr<TlsSession> TlsKeys::acceptAnybody(int fd) {
  return std::make_unique<TlsSession>(current()->context(), fd, TlsSession::Side::kOpenServer, job_,
                                      "", folder_);
}

std::unique_ptr<TlsSession> TlsKeys::connect(int fd, std::string wanted) {
  return std::make_unique<TlsSession>(current()->context(), fd, TlsSession::Side::kClient, job_,
                                      std::move(wanted), folder_);
}

}  // namespace dtf::net
