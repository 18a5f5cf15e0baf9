// Package command is the program bragg-lab: its verbs, one lab each time.
//
//	Main ──▶ a part of a lab that it started itself, or a verb ──▶ package lab ──▶ tables, target files, JSON
package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/braggdev/bragg/internal/lab/chassis"

	"github.com/spf13/cobra"

	"github.com/braggdev/bragg/internal/console"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/lab"
	"github.com/braggdev/bragg/internal/textio"
)

// Main runs one command of bragg-lab and returns the exit code of the process.
func Main(ctx context.Context, p console.Process) int {
	p.Name = "bragg-lab"
	return p.Guard(func() int {
		if lab.Started(p.Arguments) {
			return lab.Main(p.Arguments[1:])
		}
		return p.Execute(ctx, p.Root(newRoot(&p)))
	})
}

func newRoot(p *console.Process) *cobra.Command {
	root := console.HoldsVerbs(&cobra.Command{
		Use:   "bragg-lab COMMAND",
		Short: "Build hypervisor hosts on this machine, to try real VMs without hardware",
		Long: "A lab is two or more hosts in namespaces of this machine, each with a libvirt or an ssh server of its own, a\n" +
			"BMC that cuts its power, storage that all of them see, and a network with DHCP. It needs root and no network.\n" +
			"Hosts share the processors, memory and disk of this machine: a lab shows whether things work, not how fast.",
	}, newUp(p), newDown(p), newStatus(p), newTarget(p), newPower(p), newLink(p), newPrism(p), newVCenter(p))
	root.AddGroup(&cobra.Group{ID: groupLab, Title: "Commands:"})
	for _, verb := range root.Commands() {
		verb.GroupID = groupLab
	}
	return root
}

// groupLab is the one heading of the overview.
const groupLab = "lab"

// labsDirectory returns the folder of labs, beside that of runs.
func labsDirectory(p *console.Process) string {
	return filepath.Join(p.StateDirectory(), "labs")
}

// labFlag is for verbs that act on one lab.
func labFlag(cmd *cobra.Command, name *string) {
	cmd.Flags().StringVar(name, "name", "default", "name of the lab")
}

func newUp(p *console.Process) *cobra.Command {
	var o lab.Options
	var bmc string
	var templates []string
	var onlySSH, asJSON bool
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Make a lab",
		Long: "Up makes a lab, waits until its hosts are up, and writes target files for bragg run. The lab stays until\n" +
			"bragg-lab down, or until this machine stops. Leftovers of killed labs are removed first.\n\n" +
			"A template is an image for guests that is copied to where all hosts see it, for the templates of the target\n" +
			"file: --template NAME=PATH, once for each.",
		Example: "  bragg-lab up\n  bragg-lab up --hosts 3 --bmc ipmi --template ubuntu1604=./image.qcow2\n  bragg-lab up --only-ssh --name ssh",
		Args:    console.Between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch bmc {
			case "redfish", "ipmi":
				o.IPMI = bmc == "ipmi"
			default:
				return console.UsageError(cmd, "--bmc %s: want redfish or ipmi", strconv.Quote(bmc))
			}
			o.Templates = map[string]string{}
			for _, t := range templates {
				name, path, ok := strings.Cut(t, "=")
				if !ok || path == "" {
					return console.UsageError(cmd, "--template %s: want NAME=PATH", strconv.Quote(t))
				}
				o.Templates[name] = p.Path(path)
			}
			if onlySSH {
				o.SSH, o.NoLibvirt = true, true
			}
			o.Labs, o.Program = labsDirectory(p), p.Executable
			o.Say = func(text string) { fmt.Fprintln(p.Stderr, textio.Lines(text)) }
			made, err := labUp(cmd.Context(), p, o)
			if err != nil {
				return err
			}
			return printLab(cmd.Context(), p, made, asJSON)
		},
	}
	labFlag(cmd, &o.Name)
	cmd.Flags().IntVar(&o.Hosts, "hosts", 2, "number of hosts, 1 to 8")
	cmd.Flags().BoolVar(&o.SSH, "ssh", false, "run an SSH server on each host, beside libvirt")
	cmd.Flags().BoolVar(&onlySSH, "only-ssh", false, "servers of ssh and no libvirt")
	cmd.Flags().StringVar(&bmc, "bmc", "redfish", "protocol of BMCs in the target file: redfish, ipmi")
	cmd.Flags().StringArrayVar(&templates, "template", nil, "NAME=PATH of an image for guests")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func labUp(ctx context.Context, p *console.Process, o lab.Options) (*lab.Lab, error) {
	stop, end := p.WatchSignals(ctx, p.Saying("stopping; removing what was created"))
	defer end()
	made, hold, err := lab.Up(stop.Begun, o)
	if err != nil {
		return nil, err
	}
	return made, hold.Close()
}

func newDown(p *console.Process) *cobra.Command {
	var name string
	var all, asJSON bool
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Remove a lab with everything in it",
		Long: "Down ends every process of a lab and removes its guests, disks and folder. Leftovers of killed labs\n" +
			"are removed as well. It can be repeated at any time.",
		Example: "  bragg-lab down\n  bragg-lab down --all",
		Args:    console.Between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			stop, end := p.WatchSignals(cmd.Context(), p.Saying("stopping; the removal of a lab that has begun is completed"))
			defer end()
			removed, err := lab.Down(stop.Begun, labsDirectory(p), []string{name}, all)
			if asJSON {
				return errors.Join(err, p.PrintJSON(map[string][]string{"removed": append([]string{}, removed...)}))
			}
			for _, r := range removed {
				fmt.Fprintf(p.Stdout, "lab %s is removed\n", strconv.Quote(r))
			}
			if err == nil && len(removed) == 0 {
				fmt.Fprintln(p.Stdout, "There is nothing to remove.")
			}
			return err
		},
	}
	labFlag(cmd, &name)
	cmd.Flags().BoolVar(&all, "all", false, "every lab")
	console.JSONFlag(cmd.Flags(), &asJSON)
	return cmd
}

func newStatus(p *console.Process) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "List labs, and the state of their hosts",
		Example: "  bragg-lab status\n  bragg-lab status --json",
		Args:    console.Between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := lab.Labs(labsDirectory(p))
			if err != nil {
				return err
			}
			if asJSON {
				described := []labDescription{}
				for _, l := range all {
					described = append(described, describeLab(cmd.Context(), l))
				}
				return p.PrintJSON(described)
			}
			if len(all) == 0 {
				_, err := fmt.Fprintln(p.Stdout, "No labs. Next: bragg-lab up")
				return err
			}
			for _, l := range all {
				if err := printLab(cmd.Context(), p, l, false); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// labDescription is a lab as JSON shows it.
type labDescription struct {
	*lab.Lab
	Up      bool             `json:"up"`
	Status  []lab.HostStatus `json:"status"`
	URIs    []string         `json:"uris,omitempty"`
	Targets []lab.TargetFile `json:"targets"`
	Fault   string           `json:"fault,omitempty"`
}

func describeLab(ctx context.Context, l *lab.Lab) labDescription {
	d := labDescription{Lab: l, Up: l.Alive(), Status: []lab.HostStatus{}, Targets: l.TargetFiles()}
	if l.Libvirt {
		for _, h := range l.Hosts {
			d.URIs = append(d.URIs, h.URI())
		}
	}
	if !d.Up {
		d.Fault = "its processes are gone; bragg-lab up and bragg-lab down remove what they left"
		return d
	}
	status, err := l.Status(ctx)
	if err != nil {
		d.Fault = err.Error()
		return d
	}
	d.Status = status
	return d
}

func printLab(ctx context.Context, p *console.Process, l *lab.Lab, asJSON bool) error {
	d := describeLab(ctx, l)
	if asJSON {
		return p.PrintJSON(d)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "lab %s: %s, network %s, this machine is %s\n", l.Name, textio.Plural(len(l.Hosts), "host"), l.Subnet, l.Controller())
	if d.Fault != "" {
		fmt.Fprintf(&b, "  %s\n", d.Fault)
	}
	hosts := console.Table{Head: []string{"HOST", "POWER", "SERVERS", "ADDRESS", "BMC", "UUID"}}
	for i, h := range l.Hosts {
		power, servers := "–", "–"
		if i < len(d.Status) {
			s := d.Status[i]
			power, servers = string(s.Power), map[bool]string{true: "up", false: "not up"}[s.Up]
			if s.Fault != "" {
				servers = "crashed: " + s.Fault
			}
		}
		hosts.Add(h.Name, power, servers, h.Address.String(), h.BMC.String(), h.UUID)
	}
	hosts.Section(&b)
	for i, uri := range d.URIs {
		fmt.Fprintf(&b, "virsh -c %s  # %s\n", strconv.Quote(uri), l.Hosts[i].Name)
	}
	if l.SSH {
		fmt.Fprintf(&b, "ssh -i %s -o UserKnownHostsFile=%s %s@%s  # %s\n", l.SSHKeyFile(), l.KnownHostsFile(), lab.SSHUser,
			l.Hosts[0].Address, l.Hosts[0].Name)
	}
	for _, t := range d.Targets {
		over := ""
		if t.Connect == lab.ConnectSSH {
			over = ", over ssh"
		}
		fmt.Fprintf(&b, "--target %s  # provider %s%s\n", t.Path, t.Provider, over)
	}
	_, err := fmt.Fprint(p.Stdout, textio.Lines(b.String()))
	return err
}

func newTarget(p *console.Process) *cobra.Command {
	var name, provider, connect string
	var path, asJSON bool
	cmd := &cobra.Command{
		Use:     "target",
		Short:   "Print the target file of a lab, or its path",
		Example: "  bragg-lab target\n  bragg targets check \"$(bragg-lab target --path)\"\n  bragg-lab target --connect ssh",
		Args:    console.Between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if connect != "" && connect != lab.ConnectSocket && connect != lab.ConnectSSH {
				return console.UsageError(cmd, "--connect %s: want socket or ssh", strconv.Quote(connect))
			}
			l, err := lab.Find(labsDirectory(p), name)
			if err != nil {
				return err
			}
			files := l.TargetFiles()
			at := slices.IndexFunc(files, func(t lab.TargetFile) bool {
				return (provider == "" || t.Provider == provider) && (connect == "" || t.Connect == connect)
			})
			if at < 0 {
				return &diag.Error{
					Code: "lab-no-target", Exit: diag.ExitUsage, Message: fmt.Sprintf("lab %s has no such target file", strconv.Quote(name)),
					Hint: "bragg-lab up --ssh makes hosts with both",
				}
			}
			if asJSON {
				return p.PrintJSON(files[at])
			}
			return printLabTarget(p, files[at].Path, path)
		},
	}
	labFlag(cmd, &name)
	cmd.Flags().StringVar(&provider, "provider", "", "libvirt or ssh; without it libvirt where the lab has it")
	cmd.Flags().StringVar(&connect, "connect", "", "of libvirt: socket, or ssh as to hosts elsewhere; without it socket")
	cmd.Flags().BoolVar(&path, "path", false, "print its path alone")
	cmd.Flags().BoolVar(&asJSON, console.FormJSON, false, "print its path and provider as JSON")
	return cmd
}

// printLabTarget prints a target file, or only where it is.
func printLabTarget(p *console.Process, file string, pathAlone bool) error {
	if pathAlone {
		_, err := fmt.Fprintln(p.Stdout, file)
		return err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read the target file: %w", err)
	}
	_, err = p.Stdout.Write(text)
	return err
}

func newPower(p *console.Process) *cobra.Command {
	var name string
	kinds := map[string]chassis.Reset{
		"on": chassis.ResetOn, "off": chassis.ResetForceOff, "restart": chassis.ResetForceRestart, "shutdown": chassis.ResetGracefulShutdown,
	}
	cmd := &cobra.Command{
		Use:   "power HOST on|off|restart|shutdown",
		Short: "Switch the power of a host without its BMC",
		Long: "Off kills every process of the host at once, its guests among them, and takes its network away. On boots it\n" +
			"again, and returns when its servers answer. Scenarios do the same through the BMC.",
		Example: "  bragg-lab power host-2 off\n  bragg-lab power host-2 on",
		Args:    console.Between(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			kind, ok := kinds[args[1]]
			if !ok {
				return console.UsageError(cmd, "power %s: want on, off, restart or shutdown", strconv.Quote(args[1]))
			}
			l, err := lab.Find(labsDirectory(p), name)
			if err != nil {
				return err
			}
			if err := l.Reset(cmd.Context(), args[0], kind); err != nil || kind == chassis.ResetForceOff || kind == chassis.ResetGracefulShutdown {
				return err
			}
			return l.WaitUp(cmd.Context(), args[0])
		},
	}
	labFlag(cmd, &name)
	return cmd
}

func newLink(p *console.Process) *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "link HOST up|down",
		Short: "Plug or pull the network cable of a host",
		Long: "Down cuts a host and its guests off the network; they go on. Up connects them again, as does switching the\n" +
			"host off and on.",
		Example: "  bragg-lab link host-2 down",
		Args:    console.Between(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[1] != "up" && args[1] != "down" {
				return console.UsageError(cmd, "link %s: want up or down", strconv.Quote(args[1]))
			}
			l, err := lab.Find(labsDirectory(p), name)
			if err != nil {
				return err
			}
			return l.Link(cmd.Context(), args[0], args[1] == "up")
		},
	}
	labFlag(cmd, &name)
	return cmd
}
