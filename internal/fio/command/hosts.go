package command

import (
	"context"
	"errors"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/braggdev/bragg/internal/console"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/fio/fioreport"
	"github.com/braggdev/bragg/internal/fio/iohosts"
	"github.com/braggdev/bragg/internal/sshlink"
)

// hosts are the options about hosts in a command line of io.
type hosts struct {
	named         []string // values of --hosts
	list          []sshlink.Host
	jobs          iohosts.Jobs
	sshOptions    []string
	folder        string
	keep          bool
	withoutFailed bool
}

// wanted reports whether jobs run on hosts instead of here.
func (h *hosts) wanted() bool { return len(h.named) > 0 }

// ioHostOptions are the options about hosts; all take a value except the last three.
var ioHostOptions = []string{"hosts", "ssh-option", "host-folder", "device-host", "keep-on-hosts", "without-failed-hosts", "same-seed"}

// option takes one of ioHostOptions.
func (h *hosts) option(o *invocation, key, value string) error {
	switch key {
	case "hosts":
		h.named = append(h.named, value)
	case "ssh-option":
		h.sshOptions = append(h.sshOptions, value)
	case "host-folder":
		if !strings.HasPrefix(value, "/") || strings.ContainsAny(value, "\n\r\x00") {
			return usage("--host-folder=%s is not an absolute path", strconv.Quote(value))
		}
		h.folder = value
	case "keep-on-hosts":
		h.keep = true
	case "without-failed-hosts":
		h.withoutFailed = true
	case "same-seed":
		h.jobs.SameSeed = true
	case "device-host":
		if len(o.devices) == 0 {
			return usage("--device-host must follow the --allow-device that it refers to")
		}
		o.devices[len(o.devices)-1].host = value
	}
	return nil
}

// readHosts determines the hosts, once all options are known.
func readHosts(p *console.Process, o *invocation) error {
	h := &o.hosts
	if !h.wanted() {
		for _, d := range o.devices {
			if d.host != "" {
				return usage("--device-host needs --hosts")
			}
		}
		if h.keep || h.withoutFailed || h.jobs.SameSeed || h.folder != "" || len(h.sshOptions) > 0 {
			return usage("--ssh-option, --host-folder, --keep-on-hosts, --without-failed-hosts and --same-seed need --hosts")
		}
		return nil
	}
	list, err := iohosts.ParseHosts(h.named, func(name string) (string, error) {
		text, err := os.ReadFile(p.Path(name))
		return string(text), err
	})
	if err != nil {
		return err
	}
	h.list, h.jobs.Backend, h.jobs.DropAfter = list, o.backend, o.dropAfter
	h.jobs.ReadOnly = o.readonly
	for _, d := range o.devices {
		h.jobs.Devices = append(h.jobs.Devices, iohosts.Device{Host: d.host, Path: d.path, Consent: d.consent})
	}
	return iohosts.CheckDevices(h.jobs.Devices, list)
}

// record makes the parse of jobs record what hosts need from it.
func (h *hosts) record(inputs []fiojob.Input, o fiojob.Options) fiojob.Options {
	if !h.wanted() {
		return o
	}
	h.jobs.Inputs = inputs
	return h.jobs.Record(o, h.list[0])
}

// machine returns the values of this machine, with this much memory, that job files may use.
func machine(memoryBytes int64) iohosts.Surroundings {
	return iohosts.Surroundings{CPUs: int64(runtime.NumCPU()), MemoryMB: memoryBytes >> 20, PageSize: int64(os.Getpagesize())}
}

// runOnHosts runs jobs on hosts, and reports as runJobs does.
func runOnHosts(ctx context.Context, p *console.Process, o *invocation) error {
	if o.streams.intervals != "" || o.streams.metrics != "" {
		return usage("--intervals and --metrics-listen show the jobs of one machine; with --hosts, --status-interval shows those of all")
	}
	stop, end := p.WatchSignals(ctx, p.Saying("stopping all hosts; the report is of what was done"))
	defer end()
	out, closeOutput, err := openOutput(p, o.output)
	if err != nil {
		return err
	}
	if slices.Contains(o.formats, "normal") {
		if err := fioreport.WriteHead(out, o.jobs); err != nil {
			return errors.Join(err, closeOutput())
		}
	}
	o.notes.showIn(out, o)
	var watchErr error
	clients, err := iohosts.Run(stop.Begun, iohosts.Options{
		Hosts: o.hosts.list, Jobs: o.hosts.jobs, SSHOptions: o.hosts.sshOptions, Folder: o.hosts.folder, Keep: o.hosts.keep,
		WithoutFailed: o.hosts.withoutFailed, Version: console.Version(), Executable: p.Executable,
		Say:        o.notes.add,
		WatchEvery: o.every, Watch: func(c *fioreport.Clients) { watchErr = errors.Join(watchErr, o.write(out, c)) },
	})
	if err == nil {
		err = errors.Join(watchErr, o.write(out, clients))
	}
	if err = errors.Join(err, closeOutput()); err != nil {
		return err
	}
	if stop.Stopped() {
		return console.ExitWith(diag.ExitInterrupted)
	}
	if err := clients.Failed(); err != nil {
		return &diag.Error{Code: "host-failed", Message: err.Error(), Exit: diag.ExitUndecided}
	}
	return nil
}

// ServeHost is the other end, on a host with this much memory: bragg io --hosts starts it on each host.
func ServeHost(ctx context.Context, p *console.Process, memoryBytes int64) int {
	return iohosts.Serve(ctx, iohosts.Program{
		Arguments: p.Arguments[1:], Version: console.Version(), Surroundings: machine(memoryBytes), Executable: p.Executable,
		In: p.Stdin, Out: p.Stdout, Errors: p.Stderr, Exit: p.Exit,
	})
}
