// `launch:` of a cluster file: how dtf-launch reaches other hosts.

#include <gtest/gtest.h>

#include "common/cluster/cluster_yaml.h"
#include "tests/support/temporary_files.h"

namespace dtf::cluster {

using testing::badConfigOf;
using testing::TemporaryFiles;

TEST(Launch, AHostOverSshHasWhatAllHaveAndWhatDiffers) {
  const TemporaryFiles files;
  files.write("c.yaml",
              "cluster: {ps: [a:1], worker: [B:1, c:1]}\n"
              "launch:\n  via: ssh\n  user: me\n  port: 2222\n  identity: /k/id\n"
              "  ssh_config: /k/config\n  binary_dir: /opt/dtf\n"
              "  hosts: [{host: b, user: you, port: 22}]\n");
  const LaunchSpec launch = loadCluster("c.yaml", {}).launch;
  EXPECT_EQ(launch.via, LaunchSpec::Via::kSsh);
  const SshSpec& all = launch.sshOf("a");
  EXPECT_EQ(all.user, "me");
  EXPECT_EQ(all.port, 2222);
  EXPECT_EQ(all.identity, "/k/id");
  EXPECT_EQ(all.config, "/k/config");
  EXPECT_EQ(all.binary_dir, "/opt/dtf");
  const SshSpec& one = launch.sshOf("B");
  EXPECT_EQ(one.user, "you");
  EXPECT_EQ(one.port, 22);
  EXPECT_EQ(one.config, "/k/config");
  EXPECT_EQ(one.binary_dir, "/opt/dtf");
}

TEST(Launch, WhatCantBeAWordOfSshIsRefused) {
  struct Bad {
    const char* text;
    const char* first_line;
  };
  const Bad cases[] = {
      {"cluster: {ps: [a:1], worker: [b:1]}\nlaunch: {via: ssh, copy: all}\n",
       "c.yaml:2:20: error: 'copy' is not available in this version"},
      {"cluster: {worker: [b:1]}\nlaunch: {restarts: 0}\n",
       "c.yaml:2:20: error: 'restarts' is a map: {max: 0} for none, {max: 5} for a few"},
      {"cluster: {ps: [a:1], worker: [b:1]}\nlaunch: {via: ssh, user: '-oProxyCommand=x'}\n",
       "c.yaml:2:26: error: 'user' has letters, digits, '.', '_', '-', '/' and '@', and does not "
       "start "
       "with '-', got '-oProxyCommand=x'"},
      {"cluster: {ps: [a:1], worker: [b:1]}\nlaunch: {via: ssh, binary_dir: 'a b'}\n",
       "c.yaml:2:32: error: 'binary_dir' has letters, digits, '.', '_', '-', '/' and '@', and does "
       "not "
       "start with '-', got 'a b'"},
      {"cluster: {ps: [a:1], worker: [b:1]}\nlaunch: {via: ssh, hosts: [{host: b}, {host: B}]}\n",
       "c.yaml:2:39: error: the host 'B' is listed twice"},
      {"cluster: {ps: [a:1], worker: [b:1]}\nlaunch: {via: ssh, hosts: [{host: c}]}\n",
       "c.yaml:2:28: error: no task of 'cluster' is on the host 'c'"},
  };
  for (const Bad& bad : cases) {
    const TemporaryFiles files;
    files.write("c.yaml", bad.text);
    const std::string report = badConfigOf([] { loadCluster("c.yaml", {}); });
    EXPECT_EQ(report.substr(0, report.find('\n')), bad.first_line) << bad.text;
  }
}

}  // namespace dtf::cluster
