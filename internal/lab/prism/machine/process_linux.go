package machine

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/braggdev/bragg/internal/lab/prism/state"
)

// boot gives a VM its own /dev with its disks ($1: folder for it; then name and file of each disk, and "--"), and runs the agent as
// systemd would: one that fails starts again, one that ends well has shut the guest down. All processes are killed with this one.
const boot = `set -e
dev=$1; shift
mkdir -p "$dev"
mount -t tmpfs -o mode=755,size=1m dev "$dev"
for one in null zero full random urandom tty; do touch "$dev/$one"; mount --bind "/dev/$one" "$dev/$one"; done
for one in shm pts mqueue; do if [ -d "/dev/$one" ]; then mkdir "$dev/$one"; mount --bind "/dev/$one" "$dev/$one"; fi; done
ln -s /proc/self/fd "$dev/fd"
while [ "$1" != -- ]; do touch "$dev/$1"; mount --bind "$2" "$dev/$1"; shift 2; done
shift
own=${dev%/dev}/root/etc/machine-id # of cloud-init; agents with the same one are taken for clones of one VM
if [ -f "$own" ] && [ -f /etc/machine-id ]; then mount --bind "$own" /etc/machine-id; fi
mount --rbind "$dev" /dev
identity="${dev%/dev}/root/etc/machine-id"
if [ -f "$identity" ] && [ -f /etc/machine-id ]; then mount --bind "$identity" /etc/machine-id; fi
set +e
off=
trap 'off=1; kill -TERM $agent' TERM
while [ -z "$off" ]; do
	"$@" &
	agent=$!
	while kill -0 $agent 2>/dev/null; do wait $agent; code=$?; done
	if [ $code = 0 ]; then exit; fi
	if [ -z "$off" ]; then sleep 2; fi
done
`

// command starts an agent in its own namespaces, or a VM that answers nothing. Without root it shares those of this program.
func command(agent []string, config, dir string, disks []state.MachineDisk) *exec.Cmd {
	program := []string{"sleep", "infinity"}
	if config != "" {
		program = append(slices.Clone(agent), config)
	}
	args := program
	if os.Geteuid() == 0 {
		args = []string{
			"unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", boot, "boot",
			filepath.Join(dir, "dev"),
		}
		for i, d := range disks {
			if !d.CDROM {
				args = append(args, diskName(i), d.Path)
			}
		}
		args = slices.Concat(args, []string{"--"}, program)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// diskName is the name that Linux gives disk i: sda, sdb, …
func diskName(i int) string {
	letters := ""
	for n := i + 1; n > 0; n = (n - 1) / 26 {
		letters = string(rune('a'+(n-1)%26)) + letters
	}
	return "sd" + letters
}

// pressButton makes the guest shut down: the shell in its namespace passes the signal to the agent.
func pressButton(p *os.Process) {
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", p.Pid, p.Pid))
	if err != nil || len(strings.Fields(string(children))) == 0 {
		_ = p.Signal(syscall.SIGTERM)
		return
	}
	for _, field := range strings.Fields(string(children)) {
		if id, err := strconv.Atoi(field); err == nil {
			_ = syscall.Kill(id, syscall.SIGTERM)
		}
	}
}
