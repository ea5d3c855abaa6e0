"""Three hosts on a bridge, each with a small disk of its own, with sshd, the units and, where it is
installed, Slurm.

Programs beside the hosts, such as dtf-launch over ssh, have a disk of their own, too.
"""
import contextlib
import os
import pathlib
import shutil
import subprocess

import host as hosts
import slurm
import systemd_test

NAMES = ("one", "two", "three")
LAUNCHER = "10.99.0.254"
DISK = "/mnt"  # of each host, and of dtf-launch; units have a folder of it as /var/lib/dtf
DISK_MIB = 48
SSH_PORTS = {"one": 2200, "two": 2200, "three": 2201}
SOON, LONG = 30, 180  # seconds
# Units of multi-user.target that are not needed there; an empty file masks a unit.
MASKED = ("dbus.service", "dbus.socket", "getty.target", "systemd-logind.service", "systemd-user-sessions.service")
NETWORK_UNIT = """[Unit]
Before=network.target network-online.target
DefaultDependencies=no
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/sbin/ip addr add {address}/24 dev host0
ExecStart=/usr/sbin/ip link set host0 up
[Install]
WantedBy=multi-user.target
"""
SSHD_UNIT = """[Unit]
After=network.target
[Service]
ExecStartPre=/usr/bin/mkdir -p /run/sshd
ExecStart=/usr/sbin/sshd -D -e -f /etc/ssh/sshd_config
[Install]
WantedBy=multi-user.target
"""
SSHD_CONFIG = """Port {}
HostKey /etc/ssh/host_key
AuthorizedKeysFile /etc/ssh/authorized
PidFile none
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
"""


def must(*command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, timeout=LONG, **options)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}: {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout


def mnist():
    """The folder of the real MNIST if there is one, found as in tests/e2e/learns_test.cc."""
    root = pathlib.Path(__file__).resolve().parents[2]
    given = [pathlib.Path(os.environ["DTF_MNIST_DIR"])] if "DTF_MNIST_DIR" in os.environ else []
    near = [at / below for at in (root, *root.parents) for below in ("data/mnist", "shared/data/mnist")]
    return next((folder for folder in given + near if (folder / "train-images-idx3-ubyte.gz").exists()), None)


class Hosts:
    """Owns the three, the disks and the cables; close() ends them. Methods take a host by its name.
    """

    def __init__(self, build, folder, with_slurm=True):
        self.build, self.folder = build, folder
        self.local = systemd_test.installed(build, folder / "local")
        for program in ("dtf-launch", "dtf-agent"):
            shutil.copy(build / "launcher" / program, self.local / "bin")
        self.has_mnist = mnist() is not None
        if self.has_mnist:
            shutil.copytree(mnist(), self.local / "share/mnist")
        self.has_slurm = with_slurm and not slurm.missing()
        self.hosts = {}
        must("ip", "addr", "add", f"{LAUNCHER}/24", "dev", "dtf-bridge")
        must("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / "id")
        names = "".join(f"10.99.0.{number} {name}\n" for number, name in enumerate(NAMES, 1)) + f"{LAUNCHER} launcher\n"
        (folder / "hosts").write_text("127.0.0.1 localhost\n" + names)
        must("mount", "--bind", folder / "hosts", "/etc/hosts")
        self.new_disk(pathlib.Path(DISK))
        try:
            for number, name in enumerate(NAMES, 1):
                self.hosts[name] = self.new_host(number, name, names)
        except BaseException:
            self.close()
            raise

    @staticmethod
    def new_disk(place):
        must("mount", "-t", "tmpfs", "-o", f"size={DISK_MIB}m,mode=777", "tmpfs", place)
        (place / "home").mkdir(mode=0o755)
        os.chown(place / "home", slurm.USER, slurm.USER)

    def new_host(self, number, name, names):
        disk = self.disk(name)
        disk.mkdir(parents=True)
        self.new_disk(disk)
        (disk / "state").mkdir()
        etc = slurm.etc(NAMES, f"{DISK}/home") | {
            "systemd/system/test-network.service": NETWORK_UNIT.format(address=f"10.99.0.{number}"),
            "systemd/system/test-sshd.service": SSHD_UNIT, "ssh/sshd_config": SSHD_CONFIG.format(SSH_PORTS[name]),
            "ssh/authorized": (self.folder / "id.pub").read_text()}
        etc |= {f"systemd/system/{unit}": "" for unit in MASKED}
        etc["hosts"] = "127.0.0.1 localhost\n" + names
        etc["passwd"] += "sshd:x:102:65534::/run/sshd:/usr/sbin/nologin\n"
        host = hosts.Host(self.local, name=name, etc=etc, network=["--network-bridge=dtf-bridge"],
                          binds=[f"{disk}:{DISK}", f"{disk}/state:/var/lib/dtf"], target="multi-user.target")
        must("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", host.root / "etc/ssh/host_key")
        with open(self.folder / "known", "a") as known:
            known.write(f"[{name}]:{SSH_PORTS[name]} {(host.root / 'etc/ssh/host_key.pub').read_text()}")
        units = ["test-network", "test-sshd"]
        if self.has_slurm:
            slurm.prepare(host)
            units += ["munge", *(["slurmctld"] if number == 1 else []), "slurmd"]
        host.run("systemd-sysusers", "dtf.conf")
        host.systemctl("daemon-reload")
        for unit in units:  # one by one: each waits for those before it
            host.systemctl("enable", "--now", unit)
        return host

    def disk(self, name):
        return self.folder / "disks" / name

    def disks(self):
        return [pathlib.Path(DISK), *(self.disk(name) for name in NAMES)]

    def data(self, outside=False):
        """The training data, by their path on a host, or outside the hosts."""
        if not self.has_mnist:
            return "{format: digits, count: 6000}"
        folder = (self.local if outside else pathlib.Path("/usr/local")) / "share/mnist"
        return "{{format: idx, images: {0}/train-images-idx3-ubyte.gz, labels: {0}/train-labels-idx1-ubyte.gz}}".format(folder)

    def cable(self, name, state):
        must("ip", "link", "set", f"vb-{name}", state)

    def kill(self, name):
        self.hosts[name].kill()
        self.until_unplugged(name)

    def shut_down(self, name):
        self.hosts[name].shut_down()
        self.until_unplugged(name)

    def until_unplugged(self, name):
        self.until(f"end of the cable of {name}", lambda: not pathlib.Path(f"/sys/class/net/vb-{name}").exists())

    def fill(self, place):
        """Fills the disk to the last byte; returns the file to remove."""
        with contextlib.suppress(OSError), open(place / "filler", "wb", buffering=0) as filler:
            while filler.write(b"0" * 65536):
                pass
        return place / "filler"

    def until(self, what, asked, seconds=SOON):
        return next(iter(self.hosts.values())).until(what, asked, seconds)

    def mend(self):
        """Plugs the cables in, boots the hosts, frees the disks."""
        for disk in self.disks():
            (disk / "filler").unlink(missing_ok=True)
        for name, host in self.hosts.items():
            if host.leader is None:
                host.boot()
            self.cable(name, "up")

    def forget_runs(self):
        for disk in self.disks():
            for runs in (disk / "runs", disk / "state/runs"):
                shutil.rmtree(runs, ignore_errors=True)

    def close(self):
        for host in self.hosts.values():
            host.close()
        for place in ("/etc/hosts", *self.disks()):
            subprocess.run(["umount", "--lazy", place], stderr=subprocess.DEVNULL, check=False)
