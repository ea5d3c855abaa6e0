"""Units that are tested by another test than the one that carries their name. The list only gets shorter (units.py)."""

# Units that the list excuses today. The limit: fewer than 60, each entry with its reason.
EXCUSED = 47
EXCUSED_GOAL = 60
# Entries without a reason.
WITHOUT_REASON = 0

# (pattern of re.fullmatch, the test, which must exist, and the reason)
TESTED_IN = [
    (r"common/net/frame_reader_io\.cc", "tests/unit/net/frame_reader_test.cc", "the rest of FrameReader: one class in two files"),
    (r"common/net/frame_writer_io\.cc", "tests/unit/net/frame_writer_test.cc", "the rest of FrameWriter: one class in two files"),
    (r"common/net/(frame_link|tls_greeting)\.cc", "tests/unit/net/tls_session_test.cc", "TLS needs both of its ends"),
    (r"common/train/gathered_files\.cc", "tests/unit/host/travelling_shard_test.cc",
     "one end of a transfer: the other end is a ps, a floor above"),
    (r"common/wire/session/(remote_step|remote_tasks|session_calls|task_link)\.cc", "tests/conformance/session_test.cc",
     "a master's calls: the suite has tasks that answer them"),
    (r"common/serving/(part_service|served_part|served_session)\.cc", "tests/conformance/part_server_test.cc",
     "a task that serves: the suite has clients that ask it"),
    (r"common/host/(data_gate|gradient_reader|replica_service)\.cc", "tests/conformance/rpc_exchange_client_test.cc",
     "a ps's end of connections: the suite has workers and ps that use them"),
    (r"daemons/daemon\.cc", "tests/e2e/robustness_test.cc", "wiring of a process"),
    (r"daemons/serve_process\.cc", "tests/e2e/serve_test.cc", "wiring of a process"),
    (r"daemons/psd/(ps_process|psd_main|main)\.cc", "tests/e2e/by_hand_test.cc", "wiring of a process"),
    (r"daemons/workerd/(job_report|main|worker_job|worker_server|workerd_main)\.cc", "tests/e2e/by_hand_test.cc", "wiring of a process"),
    (r"launcher/main\.cc", "tests/e2e/launch_test.cc", "wiring of a process"),
    (r"launcher/ssh/agent_main\.cc", "tests/e2e/ssh_test.cc", "wiring of a process"),
    (r"launcher/ssh/ssh_hosts\.cc", "tests/unit/launcher/ssh/ssh_launch_test.cc", "it needs agents on hosts: the launches start them"),
    (r"launcher/(attach_command|detach)\.cc", "tests/e2e/verbs_test.cc", "they need a job that runs beside them"),
    (r"launcher/network/network_command\.cc", "tests/e2e/network_test.cc", "it needs an agent on each host"),
    (r"launcher/systemd/unit_(commands|follower|job)\.cc", "tests/hosts/systemd_launch_test.py", "they need a systemd"),
    (r"gpu/(cudnn_graph|convolution_graph)\.cc", "tests/gpu/cudnn_support_main.cc", "they need cuDNN: a GPU's host runs it"),
    (r"gpu/(convolution|device|matmul|program)\.cc", "tests/conformance/gpu_device_test.cc",
     "they need CUDA: the device suite runs them on a GPU"),
    (r"gpu/\w+\.cc", "tests/conformance/plugin_device_test.cc", "the boundary of the plug-in: the device suite runs it on the host"),
]
