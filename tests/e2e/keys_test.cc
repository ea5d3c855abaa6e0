// Jobs with keys of dtf-launch, over TLS: they train as without keys, even when tasks are killed. A
// peer without the right key is refused with a message.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cstdlib>

#include <filesystem>
#include <fstream>

#include "common/base/json.h"
#include "common/cluster/cluster_yaml.h"
#include "common/net/caller_loop.h"
#include "common/net/tls_keys.h"
#include "common/wire/ps/ps_link.h"
#include "tests/e2e/raw_connection.h"
#include "tests/e2e/recovery_fixture.h"
#include "tests/support/another_user.h"

namespace dtf::testing {

namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class KeysTest : public RecoveryTest {
 protected:
  std::string keys() const { return folder_.path() + "/keys"; }

  // A cluster file with keys for each of its tasks.
  std::string writeWithKeys(ClusterOptions options, const std::string& name) {
    options.top_more += "keys: keys\n";
    const std::string file = writeCluster(options, name);
    const ProcessResult made =
        runProcess({binary("dtf-launch"), "keys", "init", keys(), "--cluster", file});
    EXPECT_EQ(made.exit_code, 0) << made.err;
    return file;
  }
  // The log of the newest start of a task of a launch: "ps-0".
  std::string logOf(const std::string& name, const std::string& task, int attempt = 1) const {
    return folder_.read(fmt::format("runs/{}/logs/{}.{}.log", name, task, attempt));
  }
  // The answer of ps/0 to a peer that has `certified`'s key and claims to be `said`.
  Error refusalOf(const std::string& file, const std::string& certified, TaskId said) {
    const cluster::JobSpec job = cluster::loadCluster(file, {});
    net::CallerLoop loop(Duration{0}, net::Credentials::ofKeys(std::make_shared<net::TlsKeys>(
                                          keys(), certified, job.job)));
    std::unique_ptr<wire::PsControlLink> link;
    std::optional<Error> refusal;
    try {
      loop.call([&] {
        wire::LinkOptions options = wire::linkOptions(job, said, Incarnation::ofNow(0));
        options.timeouts.start_seconds = 5;
        wire::PsControlLink::Events events;
        events.on_lost = [](const Error&) {};
        link = std::make_unique<wire::PsControlLink>(loop, options, 0, job.cluster.ps[0].address,
                                                     events);
        return link->open();
      });
    } catch (const Error& error) {
      refusal = error;
    }
    loop.call([&] { link = nullptr; });
    return refusal.value_or(Error(ErrorCode::kInternal, "it was let in"));
  }
  // Runs `openssl s_client` with `more`; returns its output.
  ProcessResult knock(int port, const std::vector<std::string>& more) const {
    std::vector<std::string> argv = {"openssl", "s_client", "-connect",
                                     fmt::format("127.0.0.1:{}", port), "-brief"};
    argv.insert(argv.end(), more.begin(), more.end());
    return runProcess(argv, std::chrono::seconds(20));
  }
  // The body and, in a line of its own, the status that curl is answered with.
  std::string curl(const std::string& url, std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"curl", "-sS", "--max-time", "20", "-w", "\n%{http_code}", url});
    const ProcessResult result = runProcess(more, std::chrono::seconds(30));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.out;
  }
};

// Without keys, the kernel identifies peers on loopback by their user.
class AnotherUserTest : public KeysTest {
 protected:
  void SetUp() override {
    if (!mayBecomeAnotherUser()) GTEST_SKIP() << "only root can become another user";
  }
};

TEST_F(KeysTest, AJobWithKeysEndsWithTheBytesOfOneWithout) {
  ASSERT_EQ(launch(writeCluster(syncJob(), "plain"), {}, kEnd).exit_code, 0);
  const ProcessResult result = launch(writeWithKeys(syncJob(), "secure"), {}, kEnd);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(digestOf("secure"), digestOf("plain"));
  EXPECT_THAT(logOf("secure", "ps-0"), HasSubstr("event=connection_accepted"));
  EXPECT_THAT(logOf("secure", "ps-0"), HasSubstr("certificate=worker/1 kind=bulk"));
  EXPECT_THAT(logOf("plain", "ps-0"), Not(HasSubstr("connection_accepted")));
}

TEST_F(KeysTest, KilledTasksComeBackAndNoBitIsLost) {
  ClusterOptions options = syncJob();
  options.top_more = "durability: replica\n";
  ASSERT_EQ(launch(writeCluster(options, "calm"), {}, kEnd).exit_code, 0);
  Process launcher(launchCommand(writeWithKeys(options, "disturbed")), {}, folder_.path());
  ASSERT_TRUE(launcher.waitForOutput("tasks are ready", kEnd)) << launcher.err();
  ASSERT_GT(signalWorker(leftovers(), 1, SIGKILL), 0);
  ASSERT_TRUE(launcher.waitForOutput("worker/1 is back", kEnd)) << launcher.err();
  pid_t ps = -1;
  for (const std::string& process : leftovers())
    if (process.find("psd") != std::string::npos &&
        process.find(std::string("--task\0"
                                 "1",
                                 8)) != std::string::npos)
      ps = std::stoi(process);
  ASSERT_GT(ps, 0);
  ::kill(ps, SIGKILL);
  ASSERT_TRUE(launcher.waitForOutput("ps/1 is back", kEnd)) << launcher.err();
  const ProcessResult result = launcher.wait(kEnd);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(digestOf("disturbed"), digestOf("calm"));
  EXPECT_THAT(logOf("disturbed", "ps-0"), HasSubstr("certificate=ps/1 kind=bulk"));
}

TEST_F(KeysTest, ATaskActsOnlyAsWhatItsCertificateSays) {
  ClusterOptions options = syncJob();
  options.ports = freePorts(4);
  file_ = writeWithKeys(options, "job");
  ps_.push_back(task("ps", 0));
  ASSERT_TRUE(ps_[0]->waitForOutput("event=listening", kEnd)) << ps_[0]->err();
  const Error as_chief = refusalOf(file_, "worker/1", kChief);
  EXPECT_EQ(as_chief.code(), ErrorCode::kPermission) << as_chief.message();
  EXPECT_THAT(as_chief.message(), HasSubstr("is for worker/1, not for worker/0"));
  EXPECT_THAT(ps_[0]->err(), HasSubstr("event=connection_refused"));
  EXPECT_THAT(ps_[0]->err(),
              HasSubstr("it says that it is worker/0, but its certificate is for worker/1"));
  EXPECT_EQ(refusalOf(file_, "client", kChief).code(), ErrorCode::kPermission);
  EXPECT_EQ(refusalOf(file_, "ps/1", kChief).code(), ErrorCode::kPermission);
  EXPECT_THAT(refusalOf(file_, "worker/0", kChief).message(), HasSubstr("it was let in"));
  ps_[0]->signal(SIGKILL);
}

TEST_F(KeysTest, StrangersAreRefusedAndTheLogSaysWhy) {
  ClusterOptions options = syncJob();
  options.ports = freePorts(4);
  file_ = writeWithKeys(options, "job");
  ps_.push_back(task("ps", 0));
  ASSERT_TRUE(ps_[0]->waitForOutput("event=listening", kEnd)) << ps_[0]->err();
  const int port = options.ports[0];
  EXPECT_NE(knock(port, {"-tls1_2"}).exit_code, 0);
  EXPECT_TRUE(ps_[0]->waitForOutput("reason=\"it does not speak TLS 1.3\"", kEnd));
  knock(port, {"-tls1_3"});
  EXPECT_TRUE(ps_[0]->waitForOutput("it has shown no certificate of the job", kEnd))
      << ps_[0]->err();
  const std::string own = folder_.path() + "/own";
  ASSERT_EQ(runProcess({"openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=worker", "-addext",
                        "subjectAltName=URI:dtf://job/worker/0", "-keyout", own + ".key", "-out",
                        own + ".crt"})
                .exit_code,
            0);
  knock(port, {"-tls1_3", "-cert", own + ".crt", "-key", own + ".key"});
  EXPECT_TRUE(ps_[0]->waitForOutput(
      "its certificate (worker/0 of job 'job') is signed by itself, not by this job's CA", kEnd))
      << ps_[0]->err();
  ps_[0]->signal(SIGKILL);
}

TEST_F(KeysTest, KeysAreRenewedWhileTheJobRuns) {
  ClusterOptions options = syncJob();
  Process launcher(launchCommand(writeWithKeys(options, "job")), {}, folder_.path());
  ASSERT_TRUE(launcher.waitForOutput("tasks are ready", kEnd)) << launcher.err();
  const ProcessResult renewed = runProcess({binary("dtf-launch"), "keys", "renew", keys()});
  ASSERT_EQ(renewed.exit_code, 0) << renewed.err;
  ASSERT_GT(signalWorker(leftovers(), 1, SIGKILL), 0);
  ASSERT_TRUE(launcher.waitForOutput("worker/1 is back", kEnd)) << launcher.err();
  EXPECT_THAT(logOf("job", "ps-0"), HasSubstr("event=keys_renewed"));
  const ProcessResult result = launcher.wait(kEnd);
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

// In each step ps/0 sends the weights to worker/1, and has their update from worker/0.
TEST_F(KeysTest, AGraphRunsOnTasksThatServeWithKeysAndForNobodyWithout) {
  ClusterOptions options;
  options.ports = freePorts(4);
  const std::string plain = writeCluster(options, "plain");
  const std::string file = writeWithKeys(options, "serving");
  std::vector<Process> tasks;
  for (const auto& [job, index] : {std::pair{"ps", 0}, {"ps", 1}, {"worker", 0}, {"worker", 1}})
    tasks.push_back(startTask(file, job, index, {"--serve"}));
  for (Process& task : tasks) ASSERT_TRUE(task.waitForOutput("event=serving", kEnd)) << task.err();
  const auto graph = [](const std::string& cluster) {
    const std::string root = std::getenv("DTF_SOURCE_ROOT");
    return runProcess({binary("dtf-launch"), "graph", cluster, "--graph",
                       root + "/configs/graphs/linear_regression.yaml"},
                      std::chrono::seconds(60));
  };
  const ProcessResult result = graph(file);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("step 200  loss "));
  EXPECT_THAT(tasks[0].err(), HasSubstr("certificate=client"));
  EXPECT_THAT(tasks[0].err(), HasSubstr("certificate=worker/0 kind=bulk"));
  EXPECT_THAT(tasks[3].err(), HasSubstr("certificate=ps/0 kind=bulk"));
  const ProcessResult stranger = graph(plain);
  EXPECT_NE(stranger.exit_code, 0);
  EXPECT_THAT(stranger.out, Not(HasSubstr("step ")));
  EXPECT_THAT(tasks[2].err(), HasSubstr("event=connection_refused"));
}

TEST_F(KeysTest, StatusAsksWithTheClientsKey) {
  ClusterOptions options = syncJob();
  options.steps = 100'000'000;
  const std::string file = writeWithKeys(options, "job");
  Process launcher(launchCommand(file), {}, folder_.path());
  ASSERT_TRUE(launcher.waitForOutput("tasks are ready", kEnd)) << launcher.err();
  const ProcessResult status =
      runProcess({binary("dtf-launch"), "status", file, "--json"}, kEnd, {}, folder_.path());
  EXPECT_EQ(status.exit_code, 0) << status.err;
  EXPECT_THAT(status.out, HasSubstr("gradients_applied"));
  std::filesystem::remove(keys() + "/client.pem");
  const ProcessResult refused =
      runProcess({binary("dtf-launch"), "status", file}, kEnd, {}, folder_.path());
  EXPECT_EQ(refused.exit_code, 65);
  EXPECT_THAT(refused.err, HasSubstr("client.pem is missing"));
  launcher.signal(SIGTERM);
  launcher.wait(kEnd);
}

TEST_F(KeysTest, PagesAreHttpsForWhoHasAKeyOfTheJob) {
  ClusterOptions options = syncJob();
  options.ports = freePorts(4);
  const int port = freePorts(1)[0];
  file_ = writeWithKeys(options, "job");
  ps_.push_back(std::make_unique<Process>(
      startTask(file_, "ps", 0, {"--metrics-port", std::to_string(port)})));
  const std::string at = fmt::format("localhost:{}", port);
  ASSERT_TRUE(ps_[0]->waitForOutput("event=metrics url=https://", kEnd)) << ps_[0]->err();
  const std::string ca = keys() + "/ca.pem", client = keys() + "/client.pem";
  const std::vector<std::string> stranger = {"--cacert", ca};
  const std::vector<std::string> friendly = {"--cacert", ca, "--cert", client};
  EXPECT_THAT(curl("https://" + at + "/metrics", friendly),
              AllOf(HasSubstr("dtf_task_ready{"), EndsWith("\n200")));
  EXPECT_THAT(curl("https://" + at + "/", friendly), EndsWith("\n200"));
  EXPECT_THAT(curl("https://" + at + "/readyz", friendly),
              AllOf(StartsWith("not ready: "), EndsWith("\n503")));
  // Certificate and key in one file, as browsers import it and daemons/METRICS.md makes it.
  const std::string bundle = folder_.path() + "/client.p12";
  const ProcessResult made = runProcess(
      {"openssl", "pkcs12", "-export", "-in", client, "-out", bundle, "-passout", "pass:secret"},
      kEnd);
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_THAT(curl("https://" + at + "/status.json",
                   {"--cacert", ca, "--cert-type", "P12", "--cert", bundle + ":secret"}),
              AllOf(HasSubstr("\"task\":\"ps/0\""), EndsWith("\n200")));
  for (const char* page : {"/metrics", "/status.json", "/"})
    EXPECT_THAT(curl("https://" + at + page, stranger),
                AllOf(HasSubstr("client.pem"), Not(HasSubstr("dtf_")), EndsWith("\n403")))
        << page;
  EXPECT_EQ(curl("https://" + at + "/healthz", stranger), "yes\n\n200");
  EXPECT_EQ(curl("https://" + at + "/readyz", stranger), "no\n\n503");
  EXPECT_THAT(curl("http://" + at + "/healthz"),
              AllOf(HasSubstr("ask by https://"), EndsWith("\n400")));
  const ProcessResult knocked = runProcess(
      {"bash", "-c",
       "printf 'GET /healthz HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n' | openssl s_client -quiet "
       "-verify_return_error -verify_hostname localhost -CAfile " +
           ca + " -cert " + client + " -connect " + at},
      kEnd);
  EXPECT_THAT(knocked.out, StartsWith("HTTP/1.1 200 ")) << knocked.err;
  ps_[0]->signal(SIGKILL);
}

TEST_F(AnotherUserTest, IsRefusedByAJobsTask) {
  ClusterOptions options = syncJob();
  options.ports = freePorts(4);
  file_ = writeCluster(options);
  ps_.push_back(task("ps", 0));
  ASSERT_TRUE(ps_[0]->waitForOutput("event=listening", kEnd)) << ps_[0]->err();
  const std::string hello = preamble();
  const AnotherUser nobody([&](int tell) {
    const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(options.ports[0]));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) ::_exit(2);
    (void)!::send(fd, hello.data(), hello.size(), MSG_NOSIGNAL);
    char byte;
    const ssize_t got = ::recv(fd, &byte, 1, 0);
    (void)!::write(tell, &got, sizeof got);
  });
  EXPECT_LE(nobody.told<ssize_t>(), 0) << "it was answered";
  EXPECT_TRUE(ps_[0]->waitForOutput("it is a process of user 65534 of this host", kEnd))
      << ps_[0]->err();
  EXPECT_THAT(ps_[0]->err(), HasSubstr("event=connection_refused peer=127.0.0.1:"));
  ps_[0]->signal(SIGKILL);
}

// A worker sends no parameters to another user's process on the ps's port.
TEST_F(AnotherUserTest, IsNotTakenForATask) {
  const AnotherUser nobody([](int tell) {
    const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof address;
    if (::bind(fd, reinterpret_cast<sockaddr*>(&address), bytes) != 0 || ::listen(fd, 5) != 0 ||
        ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &bytes) != 0)
      ::_exit(2);
    const int port = ntohs(address.sin_port);
    (void)!::write(tell, &port, sizeof port);
  });
  ClusterOptions options = syncJob();
  options.ps = 1;
  options.ports = freePorts(1 + options.workers);
  options.ports[0] = nobody.told<int>();
  options.top_more = "timeouts: {start_seconds: 2}\n";
  Process worker = startTask(writeCluster(options), "worker", 0);
  const ProcessResult result = worker.wait(kEnd);
  EXPECT_EQ(result.exit_code, 77) << result.err;
  EXPECT_THAT(result.err,
              HasSubstr("it is a process of user 65534 of this host; without keys, "
                        "this process of user 0 talks only to the same user's and root's"));
}

TEST_F(KeysTest, BadKeysAreSaidBeforeATaskStarts) {
  const std::string file = writeWithKeys(syncJob(), "job");
  const auto refusal = [&](const std::vector<std::string>& words, int code) {
    std::vector<std::string> argv = {binary("dtf-launch")};
    argv.insert(argv.end(), words.begin(), words.end());
    const ProcessResult result = runProcess(argv, kEnd, {}, folder_.path());
    EXPECT_EQ(result.exit_code, code) << result.err;
    EXPECT_FALSE(std::filesystem::exists(folder_.path() + "/runs/job/logs"))
        << "a task was started";
    return result.err;
  };
  EXPECT_EQ(refusal({"check", file}, 0), "");
  ASSERT_EQ(::chmod((keys() + "/ps-1.pem").c_str(), 0640), 0);
  EXPECT_THAT(refusal({file}, 77), AllOf(StartsWith(file + ":"), HasSubstr(": error: " + keys()),
                                         HasSubstr("ps-1.pem can be read by others (mode 0640)")));
  std::filesystem::remove(keys() + "/ps-1.pem");
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"check", file}, {file}, {"serve", file}})
    EXPECT_THAT(refusal(words, 65), AllOf(StartsWith(file + ":"), HasSubstr(" has no key for ps/1"),
                                          HasSubstr("keys: keys\n")));
  EXPECT_THAT(refusal({"check", file, "--set", "job=other"}, 78),
              HasSubstr("are of job 'job', but this is job 'other'"));
  EXPECT_THAT(refusal({file, "--keys", "none"}, 65), HasSubstr("is not a folder of keys"));
}

// With keys a task may listen where others can reach it; without, the refusal says how to make
// them.
TEST_F(KeysTest, BeyondLoopbackKeysTakeThePlaceOfInsecure) {
  const std::string port = std::to_string(freePorts(1)[0]);
  std::vector<std::string> argv = {
      binary("psd"),    "--ps-hosts=0.0.0.0:" + port,           "--worker-hosts=localhost:1",
      "--task-index=0", "--run-dir=" + folder_.path() + "/run", "--set=timeouts.start_seconds=0.2"};
  const ProcessResult refused = runProcess(argv, kEnd);
  EXPECT_EQ(refused.exit_code, 78);
  EXPECT_THAT(refused.err, HasSubstr("dtf-launch keys init"));
  ASSERT_EQ(runProcess({binary("dtf-launch"), "keys", "init", keys(), "--job", "job"}).exit_code,
            0);
  ASSERT_EQ(runProcess({binary("dtf-launch"), "keys", "issue", keys(), "ps/0"}).exit_code, 0);
  argv.push_back("--keys=" + keys());
  const ProcessResult allowed = runProcess(argv, kEnd);
  EXPECT_THAT(allowed.err, HasSubstr("event=listening address=0.0.0.0:" + port));
  EXPECT_NE(allowed.exit_code, 78) << allowed.err;
}

TEST_F(KeysTest, TheVerbMakesListsAndRefuses) {
  const auto keysVerb = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {binary("dtf-launch"), "keys"});
    return runProcess(words, kEnd, {}, folder_.path());
  };
  EXPECT_EQ(keysVerb({"init", "k"}).exit_code, 2);
  ASSERT_EQ(keysVerb({"init", "k", "--job", "mnist"}).exit_code, 0);
  EXPECT_THAT(keysVerb({"init", "k", "--job", "mnist"}).err, HasSubstr("has a CA already"));
  EXPECT_EQ(keysVerb({"issue", "k", "ps/0", "--days", "3"}).exit_code, 0);
  EXPECT_EQ(keysVerb({"issue", "k", "chief"}).exit_code, 2);
  EXPECT_EQ(keysVerb({"show", "none"}).exit_code, 65);
  const Json shown = Json::parse(keysVerb({"show", "k", "--json"}).out);
  EXPECT_EQ(shown["event"], "keys");
  EXPECT_EQ(shown["job"], "mnist");
  ASSERT_EQ(shown["keys"].size(), 3u);
  EXPECT_EQ(shown["keys"][2]["task"], "ps/0");
  EXPECT_EQ(shown["keys"][2]["expired"], false);
}

}  // namespace

}  // namespace dtf::testing
