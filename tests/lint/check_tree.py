"""Checks of the whole tree that no compiler makes. Usage: check_tree.py [ROOT]

1. Floors: includes point down only, siblings never include each other, third parties only where the table in
   common/README.md allows them. The table there is the rule; this script parses it.
2. Headers: each compiles alone, and is compiled here by itself: most builds are unity builds, where a .cc that includes
   its own header first proves nothing. What compiled once is remembered in ~/.cache/dtf/headers ($XDG_CACHE_HOME), for
   every checkout, by its content and that of all it includes.
3. Every unit (a .cc in a library) has its test in tests/unit.
4. No file is longer than 450 lines, no function outside of a class than 70.
5. A library has 8 asserts per 1000 lines, and no function that nothing calls, but for a list of them.
6. The verbs, scripts, configurations and tables of dtf-bench that README.md names are there.
"""
import collections
import concurrent.futures
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile

LINES_MAX = 450
FUNCTION_LINES_MAX = 70

# Which third party an include belongs to. Checked in order; first match wins.
THIRD_PARTIES = [
    (r"boost/program_options", "Boost.Program_options"),
    (r"boost/", "Asio"),
    (r"capnp/(rpc|ez-rpc|rpc-twoparty|serialize-async)", "capnp-rpc"),
    (r"capnp/", "capnp"),
    (r"kj/", "kj"),
    (r"yaml-cpp/", "yaml-cpp"),
    (r"spdlog/", "spdlog"),
    (r"fmt/", "fmt"),
    (r"nlohmann/", "nlohmann-json"),
    (r"(oneapi/dnnl/|dnnl)", "oneDNN"),
    (r"zlib", "zlib"),
    (r"png\.h", "libpng"),
    (r"jpeglib\.h|jerror\.h", "libjpeg-turbo"),
    (r"xxh", "xxHash"),
    (r"protozero/", "protozero"),
    (r"openssl/", "OpenSSL"),
    (r"cuda|cudnn|cublas", "CUDA"),
]
# A library that may use the first may use the second: one package.
IMPLIED = {"capnp-rpc": {"capnp", "kj"}, "capnp": {"kj", "capnp-rpc"}, "nlohmann-json": set()}

# Units that are tested through another: where, and that file must exist. Patterns of re.fullmatch.
TESTED_IN = [
    (r"common/checkpoint/manifest_json\.cc", "tests/unit/checkpoint/manifest_test.cc"),
    (r"common/checkpoint/verify\.cc", "tests/unit/checkpoint/damage_test.cc"),
    (r"common/train/gathered_files\.cc", "tests/unit/daemons/psd/travelling_shard_test.cc"),
    (r"common/data/(jpeg|png)_decoder\.cc", "tests/unit/data/image_decoder_test.cc"),
    (r"common/net/(frame_link|tls_greeting)\.cc", "tests/unit/net/tls_session_test.cc"),
    (r"common/yaml/sent_files\.cc", "tests/unit/launcher/ssh/sent_files_folder_test.cc"),
    (r"launcher/live_tasks\.cc", "tests/e2e/found_runs_test.cc"),
    (r"common/yaml/home_path\.cc", "tests/unit/cluster/cluster_yaml_test.cc"),
    (r"common/(yaml/(map_reader|yaml_syntax)|cluster/read_\w+|model/read_model)\.cc", "tests/unit/cluster/bad_files_test.cc"),
    (r"common/model/(layer_builder|layers/(dense|dropout|flatten))\.cc", "tests/unit/model/model_graph_test.cc"),
    (r"common/model/layers/window_keys\.cc", "tests/unit/model/layers/conv2d_test.cc"),
    (r"common/cluster/schema_(optimizers|tables)\.cc", "tests/unit/cluster/schema_test.cc"),
    (r"common/cluster/command_line\.cc", "tests/unit/cluster/options_test.cc"),
    (r"common/graph/(op_def|shape_functions|standard_\w+)\.cc", "tests/unit/graph/graph_test.cc"),
    (r"common/graph/gradients\.cc", "tests/unit/graph/autodiff_test.cc"),
    (r"common/train/device_arena\.cc", "tests/unit/train/device_variables_test.cc"),
    (r"common/graph/gradients_layers\.cc", "tests/unit/graph/autodiff_layers_test.cc"),
    (r"common/graph/builder_control\.cc", "tests/unit/graph/control_ops_test.cc"),
    (r"common/graph/gradients_control\.cc", "tests/unit/graph/autodiff_control_test.cc"),
    (r"common/graph/builder_layers\.cc", "tests/unit/graph/layer_ops_test.cc"),
    (r"common/graph/builder_math\.cc", "tests/unit/graph/math_ops_test.cc"),
    (r"common/graph/gradients_math\.cc", "tests/unit/graph/autodiff_math_test.cc"),
    (r"common/graph/gradients_image\.cc", "tests/unit/graph/autodiff_image_test.cc"),
    (r"common/engine/part_program\.cc", "tests/unit/engine/executor_test.cc"),
    (r"common/engine/plan\.cc", "tests/unit/engine/session_test.cc"),
    (r"common/wire/(remote_step|remote_tasks|session_calls|task_link)\.cc", "tests/conformance/session_test.cc"),
    (r"daemons/(part_server|part_service|served_part|served_session)\.cc", "tests/conformance/part_server_test.cc"),
    (r"daemons/serve_process\.cc", "tests/e2e/serve_test.cc"),
    (r"common/api/examples/\w+\.cc", "tests/e2e/examples_test.cc"),
    (r"common/api/model\.cc", "tests/e2e/examples_test.cc"),
    (r"common/api/guarded\.cc", "tests/unit/api/tensor_test.cc"),
    (r"common/graph/graph_copy\.cc", "tests/unit/graph/merge_test.cc"),
    (r"common/graph/transfer\.cc", "tests/unit/graph/partitioner_test.cc"),
    (r"common/graph/placement_table\.cc", "tests/unit/graph/placer_test.cc"),
    (r"common/net/(acceptor|bind)\.cc", "tests/unit/net/listener_test.cc"),
    (r"common/net/(frame_\w+|wrapped_stream)\.cc", "tests/unit/net/message_stream_test.cc"),
    (r"common/ps/shard_declaration\.cc", "tests/unit/ps/shard_test.cc"),
    (r"common/ps/shard_averages\.cc", "tests/unit/ps/shard_test.cc"),
    (r"common/ps/async_grants\.cc", "tests/unit/ps/shard_replication_test.cc"),
    (r"common/ps/sync_sets\.cc", "tests/unit/ps/shard_replication_test.cc"),
    (r"common/wire/replica_link\.cc", "tests/conformance/rpc_parameter_client_test.cc"),
    (r"common/train/training_evaluation\.cc", "tests/unit/train/training_loop_test.cc"),
    (r"daemons/psd/(gradient_reader|replica_service)\.cc", "tests/conformance/rpc_parameter_client_test.cc"),
    (r"common/train/checkpoint_recovery\.cc", "tests/unit/train/checkpointer_test.cc"),
    (r"common/ps/sync_waits\.cc", "tests/unit/ps/sync_coordinator_test.cc"),
    (r"common/ps/optimizer_kernels\.cc", "tests/unit/ps/optimizer_test.cc"),
    (r"common/runtime/(cpu_kernels_\w+|cpu_matmul)\.cc", "tests/conformance/device_suite.cc"),
    (r"common/runtime/fused_softmax_isa\.cc", "tests/unit/runtime/fused_softmax_test.cc"),
    (r"common/runtime/fusion_pooling\.cc", "tests/unit/runtime/fusion_test.cc"),
    (r"common/runtime/matrix_product_isa\.cc", "tests/unit/runtime/matrix_product_test.cc"),
    (r"common/runtime/norm_loops_isa\.cc", "tests/unit/runtime/norm_loops_test.cc"),
    (r"common/runtime/pooling_isa\.cc", "tests/unit/runtime/pooling_test.cc"),
    (r"common/runtime/step_compiler\.cc", "tests/unit/runtime/compiled_step_test.cc"),
    (r"common/runtime/framed_convolution_isa\.cc", "tests/unit/runtime/framed_convolution_test.cc"),
    (r"common/runtime/depthwise_convolution_isa\.cc", "tests/unit/runtime/depthwise_convolution_test.cc"),
    (r"common/runtime/vector_loops_isa\.cc", "tests/unit/runtime/vector_loops_test.cc"),
    (r"common/runtime/winograd_isa\.cc", "tests/unit/runtime/winograd_test.cc"),
    (r"common/train/summaries\.cc", "tests/e2e/summaries_test.py"),
    (r"common/runtime/device\.cc", "tests/unit/runtime/compiled_step_test.cc"),
    (r"common/runtime/plugin_(device|kernel)\.cc", "tests/unit/runtime/plugin_library_test.cc"),
    (r"gpu/(cudnn_graph|convolution_graph)\.cc", "tests/gpu/cudnn_support_main.cc"),
    (r"gpu/(convolution|device|matmul|program)\.cc", "tests/conformance/gpu_device_test.cc"),
    (r"gpu/\w+\.cc", "tests/conformance/plugin_device_test.cc"),
    (r"daemons/daemon\.cc", "tests/e2e/robustness_test.cc"),
    (r"daemons/psd/(compute_runner|data_service)\.cc",
     "tests/conformance/rpc_parameter_client_test.cc"),
    (r"daemons/psd/(ps_process|main)\.cc", "tests/e2e/by_hand_test.cc"),
    (r"daemons/workerd/(job_report|main|worker_job|worker_server)\.cc", "tests/e2e/by_hand_test.cc"),
    (r"launcher/main\.cc", "tests/e2e/launch_test.cc"),
    (r"launcher/ssh/agent_main\.cc", "tests/e2e/ssh_test.cc"),
    (r"launcher/ssh/(agent_link|ssh_hosts)\.cc", "tests/unit/launcher/ssh/ssh_launch_test.cc"),
    (r"launcher/ssh/(message_fields|orders|reports)\.cc", "tests/unit/launcher/ssh/messages_test.cc"),
    (r"launcher/network/network_command\.cc", "tests/e2e/network_test.cc"),
    (r"launcher/ssh/frame_link\.cc", "tests/unit/launcher/ssh/agent_test.cc"),
    (r"launcher/(announce|commands|fd_watch|local_host|pipe_reader|spawner|stop_signals|task_host)\.cc",
     "tests/unit/launcher/session_test.cc"),
    (r"launcher/submit_command\.cc", "tests/hosts/slurm_test.py"),
    (r"launcher/systemd/unit_(commands|follower|job)\.cc", "tests/hosts/systemd_launch_test.py"),
    (r"launcher/graph_command\.cc", "tests/e2e/graph_test.cc"),
    (r"launcher/keys_command\.cc", "tests/e2e/keys_test.cc"),
    (r"launcher/(attach_command|detach|explain_command|logs_command|status_command|stop_command)\.cc", "tests/e2e/verbs_test.cc"),
    (r"launcher/(eval_command|export_command|import_command|predict_command|trained_model)\.cc", "tests/e2e/model_verbs_test.cc"),
    (r"common/model_files/(onnx_ops|onnx_proto|onnx_values|trained_model)\.cc", "tests/unit/model_files/onnx_file_test.cc"),
    (r"common/model_files/onnx_reader\.cc", "tests/unit/model_files/weight_reader_test.cc"),
    (r"daemons/workerd/(local_client|worker_client)\.cc", "tests/e2e/one_process_test.cc"),
    (r"launcher/task_words\.cc", "tests/unit/launcher/task_monitor_test.cc"),
]

# Headers that are made for being compiled several times, under a define of their own.
NOT_ALONE = {"common/runtime/vector.h"}
# And headers that read CUDA's, which few hosts have: the plug-in's own build compiles them.
NOT_ALONE |= {"gpu/convolution_graph.h", "gpu/cuda_error.h", "gpu/cudnn_graph.h", "gpu/libraries.h"}


def floors(readme):
    """{library folder: (floor, allowed third parties)} from the table in common/README.md."""
    table = {}
    for line in readme.read_text().splitlines():
        match = re.match(r"\|\s*(\d)\s*\|\s*`([^`]+)`\s*\|[^|]*\|([^|]*)\|", line)
        if match:
            allowed = {name.strip() for name in match.group(3).split(",")}
            for name in list(allowed):
                allowed |= IMPLIED.get(name, set())
            table[match.group(2)] = (int(match.group(1)), allowed)
    return table


def library_of(path, table):
    """The library that a path belongs to: the longest folder of the table that holds it."""
    holders = [lib for lib in table if str(path).startswith(lib + "/")]
    return max(holders, key=len) if holders else None


def includes(path):
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        match = re.match(r'\s*#\s*include\s+[<"]([^>"]+)[>"]', line)
        if match:
            yield number, match.group(1)


def check_floors(root, files, table):
    for path in files:
        library = library_of(path, table)
        if library is None:
            continue
        floor, allowed = table[library]
        for number, name in includes(root / path):
            where = f"{path}:{number}"
            target = library_of(name, table)
            if target == library:
                continue
            if target is not None:
                if table[target][0] >= floor:
                    yield f"{where}: error: {library} (floor {floor}) includes {name} of {target} (floor {table[target][0]})"
                continue
            party = next((p for pattern, p in THIRD_PARTIES if re.match(pattern, name)), None)
            base_allowed = table.get("common/base", (0, set()))[1] & {"fmt", "nlohmann-json"}
            if party and party not in allowed and party not in base_allowed:
                yield f"{where}: error: {library} may not use {party} ({name}); see common/README.md"


def check_own_header_first(root, files):
    for path in files:
        if path.suffix != ".cc" or str(path).startswith("tests/"):
            continue
        own = path.with_suffix(".h")
        if (root / own).exists():
            first = next((name for _, name in includes(root / path)), None)
            if first != str(own):
                yield f"{path}:1: error: includes {first} before its own header {own}"


def closure_of(root, path, known):
    """The dtf files that a file includes, itself among them, as far as they are in the tree."""
    if path not in known:
        known[path] = {path}  # also ends a circle
        for _, name in includes(root / path):
            if (root / name).exists() and name.endswith((".h", ".capnp")):
                known[path] = known[path] | closure_of(root, pathlib.Path(name), known)
    return known[path]


def check_headers_alone(root, files):
    headers = [p for p in files if p.suffix == ".h" and str(p) not in NOT_ALONE]
    with tempfile.TemporaryDirectory() as schemas:  # of its own: a fresh clone has no build folder yet
        texts = b""
        for schema in sorted(p for top in ("common", "tests") for p in (root / top).rglob("*.capnp")):
            subprocess.run(["capnp", "compile", f"-oc++:{schemas}", f"--src-prefix={root}", str(schema)], check=True)
            texts += schema.read_bytes()
        yield from check_each_alone(root, headers, schemas, texts)


def check_each_alone(root, headers, schemas, schema_texts):
    command = ["g++", "-std=c++20", "-fsyntax-only", "-DBOOST_ERROR_CODE_HEADER_ONLY", '-DDTF_SOURCE_ROOT="."']
    version = subprocess.run(["g++", "--version"], capture_output=True, check=True).stdout
    proven = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "dtf/headers"
    proven.mkdir(parents=True, exist_ok=True)
    known = {}

    def compiles(path):
        digest = hashlib.sha256(" ".join(command).encode() + version + schema_texts)
        for file in sorted(closure_of(root, path, known)):
            digest.update(str(file).encode() + b"\0" + (root / file).read_bytes())
        stamp = proven / digest.hexdigest()
        if stamp.exists():
            return None
        with tempfile.NamedTemporaryFile("w", suffix=".cc") as source:
            source.write(f'#include "{path}"\n')
            source.flush()
            result = subprocess.run([*command, f"-I{root}", f"-I{schemas}", source.name], capture_output=True, text=True)
        if result.returncode == 0:
            stamp.touch()
            return None
        first = result.stderr.splitlines()[:3]
        return f"{path}:1: error: does not compile alone: {' '.join(first)}"

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        yield from (problem for problem in pool.map(compiles, headers) if problem)


def check_tests_exist(root, files, table):
    for path in files:
        library = library_of(path, table)
        if library is None or path.suffix != ".cc":
            continue
        mirror = pathlib.Path("tests/unit") / path.relative_to("common" if library.startswith("common/") else ".")
        elsewhere = next((there for pattern, there in TESTED_IN if re.fullmatch(pattern, str(path))), None)
        mirror = pathlib.Path(elsewhere or mirror.with_name(f"{path.stem}_test.cc"))
        if not (root / mirror).exists():
            yield f"{path}:1: error: has no test: {mirror} is missing"


def code_in(text):
    """(line number, code) of Markdown: the lines of its blocks, and what stands within backquotes in one line."""
    in_block = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            in_block = not in_block
        elif in_block:
            yield number, line.partition("#")[0]
        else:
            for code in re.findall(r"`([^`]+)`", line):
                yield number, code


def check_readme(root):
    """What README.md has readers type is there: verbs of dtf-launch, tables of dtf-bench, scripts, configurations."""
    readme = root / "README.md"
    if not readme.exists():
        return
    verbs = set(re.findall(r'^    \{"([a-z]+)", Verb::', (root / "launcher/options.cc").read_text(), re.M)) | {"help"}
    tables = set(re.findall(r'^    \{"([a-z-]+)",', (root / "tests/bench/main.cc").read_text(), re.M))
    for number, code in code_in(readme.read_text()):
        for verb in re.findall(r"(?:^|[/ ])dtf-launch ([a-z]+)(?= |$)", code):
            if verb not in verbs:
                yield f"README.md:{number}: error: dtf-launch has no verb '{verb}'"
        for words in re.findall(r"dtf-bench((?: --[a-z]+(?: \d+)?| [a-z-]+)+)", code):
            for table in re.findall(r"(?<= )[a-z][a-z-]*", words):
                if table not in tables:
                    yield f"README.md:{number}: error: dtf-bench has no table '{table}'"
        for path in re.findall(r"(?<![\w/.-])((?:scripts|configs|tests)/[\w./-]*\w)", code):
            if not (root / path).exists():
                yield f"README.md:{number}: error: {path} is not there"


def check_lengths(root, files):
    for path in files:
        lines = len((root / path).read_text(errors="replace").splitlines())
        if lines > LINES_MAX:
            yield f"{path}:{lines}: error: {lines} lines; a file fits a reader in {LINES_MAX}"


def check_function_lengths(root, files):
    """Functions outside of classes, as clang-format lays them out: from a line that starts in the first column to a "}"
    that stands there alone."""
    for path in files:
        start, has_body = 0, False
        for number, line in enumerate((root / path).read_text(errors="replace").splitlines(), 1):
            if line == "}" and start and has_body:
                if number - start + 1 > FUNCTION_LINES_MAX:
                    yield (f"{path}:{start}: error: a function of {number - start + 1} lines; "
                           f"one fits a screen in {FUNCTION_LINES_MAX}")
                start = 0
            if not start and re.match(r"(?!(namespace|class|struct|enum|union|using|extern)\b)[A-Za-z\[:]", line):
                start, has_body = number, False
            has_body = has_body or line.endswith("{")
            if start and not has_body and line.endswith((";", "}")) or line.startswith("}"):
                start = 0  # a declaration, or the end of something else


ASSERTS_MIN = 8.0  # per 1000 lines of a library
NO_ASSERTS = {"gpu"}  # a plug-in must not end the program: its checks are errors over the boundary
INSTALLED_HEADERS = "common/api/dtf"  # for the programs of others
EXAMPLES = "common/api/examples"  # of such programs
# Functions that no program calls, and what they are for.
UNCALLED_ALLOWED = {
    "gpu/cuda_error.h: cudnnGetErrorString()": "cuDNN's own, called there",
    "common/base/failpoint.h: failpointNames()": "tests arm each of them",
    "common/checkpoint/restore.h: readPart()": "tests read one part of a shard",
    "common/net/buffer_pool.h: freshCount()": "tests see that buffers are used again",
    "common/net/buffer_pool.h: retainedBytes()": "tests see the bound",
    "common/net/tls_session.h: bufferBytes()": "tests see the bound",
    "common/net/tls_session.h: keyUpdates()": "tests see that keys are renewed",
    "common/net/tls_session.h: setRecordsPerKey()": "tests need not send 2^24 records",
    "common/ps/local_parameter_client.h: loseWorker()": "a fault of tests",
    "common/ps/parameter_store.h: arenasAllocated()": "tests see that updates allocate nothing",
}


def assert_density(root, files, table):
    """Asserts (DTF_CHECK, loops' assertInLoop) per 1000 lines of each library."""
    counts = {}
    for path in files:
        library = library_of(path, table)
        if library is None or library in NO_ASSERTS or path.is_relative_to(INSTALLED_HEADERS) or path.is_relative_to(EXAMPLES):
            continue
        text = (root / path).read_text(errors="replace")
        lines, asserts = counts.get(library, (0, 0))
        counts[library] = (lines + text.count("\n"), asserts + len(re.findall(r"\bDTF_CHECK|\bassertInLoop\(", text)))
    return {library: 1000 * asserts / lines for library, (lines, asserts) in sorted(counts.items()) if lines}


# A declaration at the beginning of a line; overrides are called through the base.
DECLARED = re.compile(r"^[ \t]*(?:static |virtual |inline |constexpr |explicit )*[\w:<>,&*\s]+?[ &*>]([a-z]\w*)\(([^;{]*)([;{])", re.M)


def uncalled(root, files, table):
    """Functions of headers whose names stand in no other file of a program, and in their own .cc only as a definition."""
    words = {}
    for path in files:
        if library_of(path, table) is not None:
            text = re.sub(r"//[^\n]*|'(?:\\.|[^'\\])'|\"(?:\\.|[^\"\\])*\"", "", (root / path).read_text(errors="replace"))
            words[path] = (text, collections.Counter(re.findall(r"\b[A-Za-z_]\w*\b", text)))
    total = collections.Counter()
    for _, counts in words.values():
        total.update(counts)
    for path, (text, counts) in words.items():
        if path.suffix != ".h" or path.is_relative_to(INSTALLED_HEADERS):
            continue
        _, own = words.get(path.with_suffix(".cc"), ("", collections.Counter()))
        for name, tail, end in DECLARED.findall(text):
            inside = counts[name] + own[name]
            if total[name] == inside <= (2 if own[name] and end == ";" else 1) and not tail.rstrip().endswith("override"):
                yield f"{path}: {name}()"


def sources_of(root):
    return sorted(p.relative_to(root) for top in ("common", "daemons", "launcher", "gpu", "tests")
                  for p in (root / top).rglob("*") if p.suffix in (".h", ".cc", ".cu"))


def check_tree(root):
    root = pathlib.Path(root)
    table = floors(root / "common/README.md")
    if not table:
        return ["common/README.md:1: error: no table of floors found"]
    files = sources_of(root)
    problems = []
    for check in (lambda: check_floors(root, files, table), lambda: check_own_header_first(root, files),
                  lambda: check_headers_alone(root, files), lambda: check_tests_exist(root, files, table),
                  lambda: check_lengths(root, files), lambda: check_function_lengths(root, files)):
        problems += list(check())
    return problems + list(check_readme(root))


def report(root):
    """Prints what is counted; the problems in it."""
    root = pathlib.Path(root)
    table, files = floors(root / "common/README.md"), sources_of(root)
    density = assert_density(root, files, table)
    print("asserts per 1000 lines: " + ", ".join(f"{library} {each:.1f}" for library, each in density.items()))
    nobody_calls = sorted(set(uncalled(root, files, table)))
    print(f"{len(nobody_calls)} functions that no program calls: " + ", ".join(nobody_calls))
    for library, each in density.items():
        if each < ASSERTS_MIN:
            yield f"{library}: error: {each:.1f} asserts per 1000 lines, {ASSERTS_MIN:g} are the least"
    for function in nobody_calls:
        if function not in UNCALLED_ALLOWED:
            yield f"{function.replace(': ', ':1: error: ')} has no caller in any program: remove it, or say what it is for"
    for function in sorted(set(UNCALLED_ALLOWED) - set(nobody_calls)):
        yield f"tests/lint/check_tree.py:1: error: {function} has a caller, or is gone: take it off the list"


if __name__ == "__main__":
    tree = sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2]
    found = check_tree(tree) + list(report(tree))
    print("\n".join(found) if found else "the tree keeps its rules")
    sys.exit(1 if found else 0)
