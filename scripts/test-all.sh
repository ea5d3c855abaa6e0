# The longer checks of scripts/test.sh --all, which reads this file.

loaded_tests() {
  local status=0
  scripts/loaded-tests.sh build || status=$?
  count_cases build loaded "$status"
}

step "tests: unit in the release build" meson_tests build unit
step "tests: callers of the kernels under each instruction set" meson_tests build isa_callers
step "tests: mistakes planted for the simulators are found" meson_tests build mutants
step "tests: systemd and Kubernetes' pods, on booted hosts" meson_tests build hosts
step "tests: manual pages and completions" meson_tests build packages
step "install: no failpoints, examples build" scripts/check-install.sh build --whole
step "tests: a Slurm of two hosts" meson_tests build slurm
step "tests: three hosts, cables pulled, killed, disks full, keys renewed" three_hosts
step "packages: built, and checked by lintian" scripts/build-deb.sh
step "packages: installed in a Debian of their own, and removed" or_skipped scripts/check-deb.sh
step "container image: built without a registry, and a job in it" or_skipped scripts/check-image.sh
step "tests: simulated clusters, 10 000 seeds" build/tests/sim/sim --seeds 0:10000
step "tests: simulated sessions, 10 000 seeds" build/tests/session_sim/session_sim --seeds 0:10000
step "tests: simulated trainings by replicas, 10 000 seeds" build/tests/session_sim/session_sim --seeds 1000000000:1000010000
step "tests: killed real processes, 5 times" \
  meson_test build --repeat 5 checkpoint_kill resume ending robustness sleepers
DTF_STARTS=200 step "tests: the classic program, started 200 times" meson_test build many_starts
step "tests: one core beside four busy loops, and a slow disk" loaded_tests
step "tests: simulated clusters that are hurt at their end, each combination" build/tests/sim/sim --seeds 1000000000:1000005280
step "chaos: killed and frozen tasks, every plan" scripts/chaos.sh
step "chaos: jobs that are hurt at their end, or lost as a whole" scripts/chaos.sh tests/chaos/plans/{ending,lost,without_ps,hybrid}.yaml
step "chaos: a kill every 5 s, ten minutes for each mode" scripts/chaos.sh tests/chaos/plans/steady.yaml
step "tests: the status page in a browser" or_skipped python3 tests/e2e/status_page_test.py build
step "tests: a Prometheus server scrapes a job" python3 tests/e2e/prometheus_test.py build
step "tests: a tensor of 3 GiB between two tasks" meson_tests build large
step "bench: each table, once" meson_tests build bench
step "bench: the goals beside memcpy and a raw socket" build/tests/bench/dtf-bench --check optimizers refill edges
step "bench: a graph of 10 000 nodes in parts in under a second" build/tests/bench/dtf-bench --check graph
