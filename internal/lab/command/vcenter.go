package command

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/braggdev/bragg/internal/console"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/lab/vcsim"
	"github.com/braggdev/bragg/internal/textio"
)

// vcenterFlags are the flags of the verb.
type vcenterFlags struct {
	listen, agent string
	hosts         int
	ha            time.Duration
	noHA          bool
}

func newVCenter(p *console.Process) *cobra.Command {
	var f vcenterFlags
	cmd := &cobra.Command{
		Use:   "vcenter",
		Short: "Simulate a vCenter on loopback, with agents as VMs",
		Long: "Vcenter serves govmomi's simulator of the vSphere API with one cluster, until it is interrupted, and writes a target\n" +
			"file for bragg run. VMs are processes of bragg-agent; as root they have sparse files as disks. Hosts have BMCs that\n" +
			"kill the processes of their VMs, and HA starts them elsewhere. Nothing else of a cluster is there: statistics are\n" +
			"simulated, snapshots and clones hold no data, and durations say nothing about a real vCenter.",
		Example: "  bragg-lab vcenter\n  bragg-lab vcenter --hosts 4 --no-ha",
		Args:    console.Between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.hosts < 1 || f.hosts > vcenterHostsMax {
				return console.UsageError(cmd, "--hosts %d: want 1 to %d", f.hosts, vcenterHostsMax)
			}
			if f.ha <= 0 {
				return console.UsageError(cmd, "--ha-delay: want more than 0; --no-ha switches HA off")
			}
			if f.noHA {
				f.ha = 0
			}
			return serveVCenter(cmd.Context(), p, f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.listen, "listen", "127.0.0.1:8989", "address of the API")
	flags.IntVar(&f.hosts, "hosts", 3, "number of hosts, 1 to 16")
	flags.StringVar(&f.agent, "agent", "", "path of bragg-agent; without it the one beside this program")
	flags.DurationVar(&f.ha, "ha-delay", 5*time.Second, "from the loss of a host to the restart of its VMs")
	flags.BoolVar(&f.noHA, "no-ha", false, "VMs of a lost host stay off until it returns")
	return cmd
}

const vcenterHostsMax = 16

func serveVCenter(ctx context.Context, p *console.Process, f vcenterFlags) error {
	stop, end := p.WatchSignals(ctx, p.Saying("stopping; VMs are killed"))
	defer end()
	agent, err := agentBeside(p, f.agent)
	if err != nil {
		return err
	}
	free, err := net.Listen("tcp", f.listen) // the simulator panics where it cannot listen
	if err != nil {
		return &diag.Error{Code: "lab-vcenter", Message: "start the simulated vCenter", Err: err, Exit: diag.ExitUnavailable, Hint: "name another address with --listen"}
	}
	_ = free.Close()
	password := rand.Text()
	s, err := vcsim.Start(vcsim.Options{Hosts: f.hosts, Listen: f.listen, Password: password, HA: f.ha, Program: agent})
	if err != nil {
		return &diag.Error{Code: "lab-vcenter", Message: "start the simulated vCenter", Err: err, Exit: diag.ExitUnavailable}
	}
	defer s.Close()
	target, err := prepareVCenter(p, s, password)
	if err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "vCenter (simulated): %s, user %s\n", textio.Plural(f.hosts, "host"), vcsim.User)
	fmt.Fprintf(&b, "  endpoint     https://%s/sdk\n  fingerprint  SHA256:%s\n  --target     %s\n", s.Endpoint, s.Fingerprint, target)
	fmt.Fprintf(&b, "Ctrl-C ends it.\n")
	if _, err := fmt.Fprint(p.Stdout, textio.Lines(b.String())); err != nil {
		return err
	}
	<-stop.Begun.Done()
	return nil
}

// prepareVCenter starts BMCs, and writes the target file and the passwords, which only their owner can read.
func prepareVCenter(p *console.Process, s *vcsim.Server, password string) (target string, err error) {
	if err := s.PowerOff(vcsim.Foreign); err != nil { // where it runs, the power of its host must not be cut
		return "", err
	}
	if _, err := s.BMCs(password); err != nil {
		return "", err
	}
	dir := filepath.Join(p.StateDirectory(), "vcenter")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	text, err := s.TargetFile(dir, "allow: {node_power: true, maintenance: true}\n")
	if err != nil {
		return "", err
	}
	target = filepath.Join(dir, "target.yml")
	return target, os.WriteFile(target, []byte("# Written by bragg-lab vcenter; it goes with the simulator.\n"+text), 0o600)
}

// agentBeside finds the agent that VMs of an emulator run.
func agentBeside(p *console.Process, given string) (string, error) {
	if given == "" {
		given = filepath.Join(filepath.Dir(p.Executable), "bragg-agent")
	}
	path := p.Path(given)
	if _, err := os.Stat(path); err != nil {
		return "", &diag.Error{
			Code: "lab-no-agent", Message: "find bragg-agent for the VMs", Err: err, Exit: diag.ExitUnavailable, Hint: "make build, or name it with --agent",
		}
	}
	return path, nil
}
