// `launch:` of a cluster file: how dtf-launch reaches other hosts.

#include <gtest/gtest.h>

#include "common/cluster/cluster_yaml.h"
#include "tests/support/temporary_files.h"

namespace dtf::cluster {

using testing::badConfigOf;
using testing::TemporaryFiles;

TEST(ReadLaunch, AHostOverSshHasWhatAllHaveAndWhatDiffers) {
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

TEST(ReadLaunch, TasksThatAreOnlyCountedAreAlikeAndHere) {
  const TemporaryFiles files;
  files.write("c.yaml",
              "cluster: {ps: {count: 2}, worker: {count: 3, threads: 4, env: {A: b}}}\n"
              "launch: {via: slurm, nodes: 2, time: '2:00:00', requeue: true,\n"
              "  sbatch: [--partition=gpu, --exclusive], binary_dir: /opt/dtf}\n");
  const JobSpec job = loadCluster("c.yaml", {});
  ASSERT_EQ(job.cluster.ps.size(), 2u);
  ASSERT_EQ(job.cluster.worker.size(), 3u);
  for (const TaskSpec& worker : job.cluster.worker) {
    EXPECT_TRUE(worker.by_count);
    EXPECT_EQ(worker.address.str(), "localhost:auto");
    EXPECT_EQ(worker.threads, 4);
    EXPECT_EQ(worker.env.at("A"), "b");
  }
  EXPECT_EQ(job.launch.via, LaunchSpec::Via::kSlurm);
  EXPECT_EQ(job.launch.slurm.nodes, 2u);
  EXPECT_EQ(job.launch.slurm.time, "2:00:00");
  EXPECT_TRUE(job.launch.slurm.requeue);
  EXPECT_EQ(job.launch.slurm.options, (std::vector<std::string>{"--partition=gpu", "--exclusive"}));
  EXPECT_EQ(job.launch.ssh.binary_dir, "/opt/dtf");
}

TEST(ReadLaunch, OfATaskThatIsToldToEndTheJobIsStoppedOrPaused) {
  const TemporaryFiles files;
  files.write("c.yaml", "launch: {}\n");
  EXPECT_FALSE(loadCluster("c.yaml", {}).launch.pauses());
  for (const bool pauses : {false, true}) {
    files.write("c.yaml",
                std::string("launch: {on_sigterm: ") + (pauses ? "pause" : "stop") + "}\n");
    EXPECT_EQ(loadCluster("c.yaml", {}).launch.pauses(), pauses);
  }
}

TEST(ReadLaunch, APauseIsForAJobThatSavesAndIsNotSlurms) {
  struct Bad {
    std::string text;
    const char* first_line;
  };
  const std::string train =
      "train: {model: {input: {shape: [28, 28, 1]}, layers: [flatten: , dense: {units: 10}],\n"
      "  loss: sparse_categorical_crossentropy}, checkpoint: none}\n";
  const Bad cases[] = {
      {"launch: {on_sigterm: wait}\n",
       "c.yaml:1:22: error: unknown on_sigterm 'wait' (one of stop, pause)"},
      {"launch: {on_sigterm: pause}\n" + train,
       "c.yaml:1:22: error: 'pause' needs a checkpoint to go on from, and 'train' has 'checkpoint: "
       "none'"},
      {"launch: {via: slurm, on_sigterm: pause}\n",
       "c.yaml:1:34: error: 'pause' is not for 'via: slurm': use 'requeue: true', with which the "
       "job waits for another turn"},
  };
  for (const Bad& bad : cases) {
    const TemporaryFiles files;
    files.write("c.yaml", bad.text);
    const std::string report = badConfigOf([] { loadCluster("c.yaml", {}); });
    EXPECT_EQ(report.substr(0, report.find('\n')), bad.first_line) << bad.text;
  }
}

TEST(ReadLaunch, WhatIsCopiedIsSaidForAllHosts) {
  const TemporaryFiles files;
  files.write("c.yaml", "cluster: {ps: [a:1], worker: [b:1]}\nlaunch: {via: ssh}\n");
  EXPECT_FALSE(loadCluster("c.yaml", {}).launch.copy.any());
  files.write("c.yaml",
              "cluster: {ps: [a:1], worker: [b:1]}\nlaunch:\n  via: ssh\n"
              "  copy: {programs: true, data: true, dir: scratch/copies, max_gib: 10}\n");
  const CopySpec copy = loadCluster("c.yaml", {}).launch.copy;
  EXPECT_TRUE(copy.programs);
  EXPECT_TRUE(copy.data);
  EXPECT_EQ(copy.dir, "scratch/copies");
  EXPECT_EQ(copy.max_gib, 10u);
}

TEST(ReadLaunch, TheModelComesUnlessTheFileSaysNo) {
  const TemporaryFiles files;
  files.write("c.yaml", "cluster: {ps: [a:1], worker: [b:1]}\nlaunch: {via: ssh}\n");
  EXPECT_TRUE(loadCluster("c.yaml", {}).launch.fetch_model);
  const std::string no = "launch.fetch_model=false";
  EXPECT_FALSE(loadCluster("c.yaml", {&no, 1}).launch.fetch_model);
}

TEST(ReadLaunch, WhatCantBeAWordOfSshIsRefused) {
  struct Bad {
    const char* text;
    const char* first_line;
  };
  const Bad cases[] = {
      {"cluster: {worker: [b:1]}\nlaunch: {restarts: 0}\n",
       "c.yaml:2:20: error: 'restarts' is a map: {max: 0} for none, {max: 5} for a few"},
      {"cluster: {ps: [a:1], worker: [b:1]}\nlaunch: {via: ssh, copy: {dir: 'a b', data: true}}\n",
       "c.yaml:2:32: error: 'dir' has letters, digits, '.', '_', '-', '/' and '@', and does not "
       "start with '-', got 'a b'"},
      {"cluster: {ps: [a:1], worker: [b:1]}\nlaunch: {via: ssh, copy: {programs: false}}\n",
       "c.yaml:2:20: error: 'copy' copies nothing: it needs 'programs: true' or 'data: true'"},
      {"cluster: {ps: [a:1], worker: [b:1]}\n"
       "launch: {via: ssh, binary_dir: /opt, copy: {programs: true}}\n",
       "c.yaml:2:45: error: 'programs: true' and 'binary_dir' exclude each other: copied programs "
       "have their own folder"},
      {"cluster: {ps: [a:1], worker: [b:1]}\nlaunch: {copy: {programs: true}}\n",
       "c.yaml:2:10: error: 'copy' is for 'via: ssh'"},
      {"cluster: {ps: [a:1], worker: [b:1]}\nlaunch: {fetch_model: true}\n",
       "c.yaml:2:10: error: 'fetch_model' is for 'via: ssh' and 'via: slurm'"},
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
      {"cluster: {ps: {count: 1}, worker: [b:1]}\nlaunch: {via: ssh}\n",
       "c.yaml:1:15: error: 'count' names no hosts: over ssh each task needs its address"},
      {"cluster: {ps: {count: 0}, worker: [b:1]}\n",
       "c.yaml:1:23: error: 'count' must be from 1 to 1024, got '0'"},
      {"cluster: {worker: {threads: 2}}\n",
       "c.yaml:1:11: error: missing key 'count' in 'worker': tasks: on this host; via slurm, on "
       "each "
       "node in turn"},
      {"cluster: {worker: [b:1]}\nlaunch: {nodes: 2}\n",
       "c.yaml:2:10: error: 'nodes' is for 'via: slurm'"},
      {"cluster: {worker: [b:1]}\nlaunch: {via: slurm, user: me}\n",
       "c.yaml:2:22: error: 'user' is for 'via: ssh' and 'via: systemd'"},
      {"cluster: {worker: [b:1]}\nlaunch: {via: slurm, time: soon}\n",
       "c.yaml:2:28: error: a limit is minutes, hours:minutes:seconds or "
       "days-hours:minutes:seconds, "
       "got 'soon'"},
      {"cluster: {worker: [b:1]}\nlaunch: {via: slurm, sbatch: [exclusive]}\n",
       "c.yaml:2:31: error: an option of sbatch starts with '-' and is one line, got 'exclusive'"},
  };
  for (const Bad& bad : cases) {
    const TemporaryFiles files;
    files.write("c.yaml", bad.text);
    const std::string report = badConfigOf([] { loadCluster("c.yaml", {}); });
    EXPECT_EQ(report.substr(0, report.find('\n')), bad.first_line) << bad.text;
  }
}

}  // namespace dtf::cluster
