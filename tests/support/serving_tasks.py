"""Tasks that serve, for tests in Python: processes of psd and workerd."""
import contextlib
import pathlib
import socket
import subprocess
import threading

PATIENCE = 120  # seconds, on a busy machine


def free_ports(count):
    """Ports that the kernel chose: nobody else gets one of them soon."""
    with contextlib.ExitStack() as open_ones:
        return [open_ones.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1] for _ in range(count)]


class Cluster:
    """A ps and a worker that serve, each a process. Stopped at its end."""

    def __init__(self, folder, launch):
        self.ports, self.build = free_ports(2), pathlib.Path(launch).resolve().parents[1]
        file = pathlib.Path(folder) / "cluster.yaml"
        file.write_text(f"cluster: {{ps: [localhost:{self.ports[0]}], worker: [localhost:{self.ports[1]}]}}\n")
        self.file = file
        self.tasks = {"ps": self.start("psd"), "worker": self.start("workerd")}
        self.target = f"dtf://localhost:{self.ports[1]}"

    def start(self, program):
        """Returns the process once it serves."""
        task = subprocess.Popen([self.build / "daemons" / program / program, "--cluster", str(self.file), "--task", "0", "--serve"], stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        end = threading.Timer(PATIENCE, task.kill)
        end.start()
        lines = []
        for line in task.stderr:
            lines.append(line)
            if "event=serving" in line:
                break
        else:
            raise AssertionError(f"{program} ended: {''.join(lines)}")
        end.cancel()
        threading.Thread(target=task.stderr.read, daemon=True).start()
        return task

    def close(self):
        for task in self.tasks.values():
            task.terminate()
        for task in self.tasks.values():
            task.wait(PATIENCE)
            task.stderr.close()
