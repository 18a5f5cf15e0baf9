package machine

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/braggdev/bragg/internal/lab/agentvm"
	"github.com/braggdev/bragg/internal/lab/prism/state"
	"github.com/braggdev/bragg/internal/target"
)

// boot runs the agent in a VM's own mounts as systemd would: one that fails starts again, one that ends well has shut the guest down.
// All processes are killed with this one.
const boot = agentvm.Enclose + `set +e
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
			agentvm.Identity(dir),
		}
		for i, d := range disks {
			if !d.CDROM {
				args = append(args, "/dev/"+target.DiskName(i), d.Path)
			}
		}
		args = slices.Concat(args, []string{"--"}, program)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// pressButton makes the guest shut down: the shell in its namespace passes the signal to the agent.
func pressButton(p *os.Process) {
	if !signalGuest(p, syscall.SIGTERM) {
		_ = p.Signal(syscall.SIGTERM)
	}
}

// cutPower kills the first process of the namespace: its parent ends when the kernel has ended all processes in it. If the parent were
// killed, it could be gone before them.
func cutPower(p *os.Process) {
	if !signalGuest(p, syscall.SIGKILL) {
		_ = p.Kill()
	}
}

// signalGuest signals the children of the process that made the namespaces; false: there are none. Without root the process is the agent itself,
// whose children are its loads.
func signalGuest(p *os.Process, s syscall.Signal) (sent bool) {
	if os.Geteuid() != 0 {
		return false
	}
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", p.Pid, p.Pid))
	if err != nil {
		return false
	}
	for _, field := range strings.Fields(string(children)) {
		if id, err := strconv.Atoi(field); err == nil {
			sent = syscall.Kill(id, s) == nil || sent
		}
	}
	return sent
}
