package command

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/braggdev/bragg/internal/console"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/lab/prism"
	"github.com/braggdev/bragg/internal/lab/prism/faults"
	"github.com/braggdev/bragg/internal/lab/prism/state"
	"github.com/braggdev/bragg/internal/textio"
)

// prismFlags are the flags of the verb.
type prismFlags struct {
	listen, agent, faults string
	hosts                 int
	images                []string
	task, ha              time.Duration
	noHA                  bool
}

func newPrism(p *console.Process) *cobra.Command {
	var f prismFlags
	cmd := &cobra.Command{
		Use:   "prism",
		Short: "Emulate Nutanix Prism on loopback, with agents as VMs",
		Long: "Prism serves versions 4, 3, 2 and 1 of the API of a Prism Central with one AHV cluster, until it is interrupted, and\n" +
			"writes a target file for bragg run. VMs are processes of bragg-agent with sparse files as disks; hosts have BMCs that\n" +
			"kill the processes of their VMs, and HA starts them elsewhere. Nothing else of a cluster is there: statistics are\n" +
			"simulated, and durations say nothing about a real one. --faults is a script of what goes wrong.",
		Example: "  bragg-lab prism\n  bragg-lab prism --hosts 4 --task-duration 2s --faults faults.yml\n  bragg-lab prism --image ubuntu1604=./image.qcow2",
		Args:    console.Between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.hosts < 1 || f.hosts > prismHostsMax {
				return console.UsageError(cmd, "--hosts %d: want 1 to %d", f.hosts, prismHostsMax)
			}
			if f.task < 0 || f.ha < 0 {
				return console.UsageError(cmd, "--task-duration and --ha-delay: want 0 or more")
			}
			for _, i := range f.images {
				if name, path, ok := strings.Cut(i, "="); !ok || name == "" || path == "" {
					return console.UsageError(cmd, "--image %s: want NAME=PATH", strconv.Quote(i))
				}
			}
			return servePrism(cmd.Context(), p, f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.listen, "listen", "127.0.0.1:9440", "address of the API")
	flags.IntVar(&f.hosts, "hosts", 3, "number of hosts, 1 to 16")
	flags.StringVar(&f.agent, "agent", "", "path of bragg-agent; without it the one beside this program")
	flags.StringArrayVar(&f.images, "image", nil, "NAME=PATH of an image; its content does not matter. Without one: ubuntu1604, empty")
	flags.StringVar(&f.faults, "faults", "", "YAML file with rules: which requests and tasks fail, and how")
	flags.DurationVar(&f.task, "task-duration", 200*time.Millisecond, "how long tasks take")
	flags.DurationVar(&f.ha, "ha-delay", 5*time.Second, "from the loss of a host to the restart of its VMs")
	flags.BoolVar(&f.noHA, "no-ha", false, "VMs of a lost host stay off until it returns")
	return cmd
}

const prismHostsMax = 16

func servePrism(ctx context.Context, p *console.Process, f prismFlags) error {
	stop, end := p.WatchSignals(ctx, p.Saying("stopping; VMs are killed"))
	defer end()
	o := prism.Options{Listen: f.listen, State: state.Options{Hosts: f.hosts, TaskDuration: f.task, HADelay: f.ha, NoHA: f.noHA}}
	agent, err := agentBeside(p, f.agent)
	if err != nil {
		return err
	}
	o.Agent = []string{agent}
	if f.faults != "" {
		file, err := os.Open(p.Path(f.faults))
		if err != nil {
			return fmt.Errorf("read faults: %w", err)
		}
		o.Faults, err = faults.Read(file)
		_ = file.Close()
		if err != nil {
			return &diag.Error{Code: "lab-faults", Message: fmt.Sprintf("read faults of %q", f.faults), Err: err, Exit: diag.ExitData}
		}
	}
	if err := keep(p, &o); err != nil {
		return err
	}
	e, err := prism.New(o)
	if err != nil {
		return &diag.Error{Code: "lab-prism", Message: "start the emulator of Prism", Err: err, Exit: diag.ExitUnavailable}
	}
	defer e.Close()
	target, err := preparePrism(p, e, f)
	if err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Prism (emulated): %s, user %s\n", textio.Plural(f.hosts, "host"), e.Credentials.User)
	fmt.Fprintf(&b, "  endpoint     %s\n  fingerprint  SHA256:%s\n  --target     %s\n", e.URL, e.Fingerprint, target)
	fmt.Fprintf(&b, "Ctrl-C ends it.\n")
	if _, err := fmt.Fprint(p.Stdout, textio.Lines(b.String())); err != nil {
		return err
	}
	<-stop.Begun.Done()
	return nil
}

// prismFolder is where the target file is, with what the next emulator uses again.
func prismFolder(p *console.Process) string { return filepath.Join(p.StateDirectory(), "prism") }

// keep gives the emulator the certificate and the password of the one before: target files stay valid, and "bragg clean" finds what is left of
// runs that an emulator did not survive.
func keep(p *console.Process, o *prism.Options) error {
	dir := prismFolder(p)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	c, err := prism.Certificate(filepath.Join(dir, "certificate.pem"))
	if err != nil {
		return &diag.Error{Code: "lab-prism", Message: "start the emulator of Prism", Err: err, Exit: diag.ExitUnavailable}
	}
	o.Certificate = &c
	if text, err := os.ReadFile(filepath.Join(dir, "password")); err == nil {
		o.Credentials.Password = strings.TrimSpace(string(text))
	}
	return nil
}

// preparePrism adds images and BMCs, and writes the target file and the password, which only its owner can read.
func preparePrism(p *console.Process, e *prism.Emulator, f prismFlags) (target string, err error) {
	if len(f.images) == 0 {
		if _, err := e.AddImage("ubuntu1604", strings.NewReader("nothing boots from it")); err != nil {
			return "", err
		}
	}
	for _, one := range f.images {
		name, path, _ := strings.Cut(one, "=")
		file, err := os.Open(p.Path(path))
		if err != nil {
			return "", fmt.Errorf("read image %q: %w", name, err)
		}
		_, err = e.AddImage(name, file)
		_ = file.Close()
		if err != nil {
			return "", err
		}
	}
	if _, err := e.BMCs(); err != nil {
		return "", err
	}
	dir := prismFolder(p)
	secret := filepath.Join(dir, "password")
	if err := os.WriteFile(secret, []byte(e.Credentials.Password+"\n"), 0o600); err != nil {
		return "", err
	}
	target = filepath.Join(dir, "target.yml")
	return target, os.WriteFile(target, []byte("# Written by bragg-lab prism; it goes with the emulator.\n"+e.TargetFile(secret)), 0o600)
}
