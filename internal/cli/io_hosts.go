package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/fio/iohosts"
	"github.com/braggdev/bragg/internal/fio/iojob"
	"github.com/braggdev/bragg/internal/session"
	"github.com/braggdev/bragg/internal/sshlink"
)

// ioHosts is what a command line of io says of hosts.
type ioHosts struct {
	named         []string // as they stand behind --hosts
	list          []sshlink.Host
	jobs          iohosts.Jobs
	sshOptions    []string
	folder        string
	keep          bool
	withoutFailed bool
}

// wanted tells whether jobs run on hosts instead of here.
func (h *ioHosts) wanted() bool { return len(h.named) > 0 }

// ioHostOptions are those of the command line that are about hosts; all take a value but the last three.
var ioHostOptions = []string{"hosts", "ssh-option", "host-folder", "device-host", "keep-on-hosts", "without-failed-hosts", "same-seed"}

// option takes one of ioHostOptions.
func (h *ioHosts) option(o *ioOrder, key, value string) error {
	switch key {
	case "hosts":
		h.named = append(h.named, value)
	case "ssh-option":
		h.sshOptions = append(h.sshOptions, value)
	case "host-folder":
		if !strings.HasPrefix(value, "/") || strings.ContainsAny(value, "\n\r\x00") {
			return usage("--host-folder=%s is no absolute path", quote(value))
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
			return usage("--device-host stands behind the --allow-device that it is about")
		}
		o.devices[len(o.devices)-1].host = value
	}
	return nil
}

// readHosts works out the hosts, once all options are known.
func (p *Process) readHosts(o *ioOrder) error {
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
		text, err := os.ReadFile(p.path(name))
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

// record lets the parse of jobs note what hosts need of it.
func (h *ioHosts) record(inputs []fiojob.Input, o fiojob.Options) fiojob.Options {
	if !h.wanted() {
		return o
	}
	h.jobs.Inputs = inputs
	return h.jobs.Record(o, h.list[0])
}

func surroundings() iohosts.Surroundings {
	return iohosts.Surroundings{CPUs: int64(runtime.NumCPU()), MemoryMB: session.MemoryBytes() >> 20, PageSize: int64(os.Getpagesize())}
}

// runOnHosts runs jobs on hosts, and reports as runIO does.
func (p *Process) runOnHosts(ctx context.Context, o *ioOrder) error {
	if o.streams.intervals != "" || o.streams.metrics != "" {
		return usage("--intervals and --metrics-listen show the jobs of one machine; with --hosts, --status-interval shows those of all")
	}
	stop, end := p.watchSignals(ctx)
	defer end()
	stop.follow("", func(string) { fmt.Fprintln(p.Stderr, "bragg: stopping all hosts; the report is of what was done") })
	out, closeOutput, err := p.ioOutput(o.output)
	if err != nil {
		return err
	}
	if slices.Contains(o.formats, "normal") {
		if err := iojob.WriteHead(out, o.jobs); err != nil {
			return errors.Join(err, closeOutput())
		}
	}
	o.notes.showIn(out, o)
	var watchErr error
	clients, err := iohosts.Run(stop.begun, iohosts.Options{
		Hosts: o.hosts.list, Jobs: o.hosts.jobs, SSHOptions: o.hosts.sshOptions, Folder: o.hosts.folder, Keep: o.hosts.keep,
		WithoutFailed: o.hosts.withoutFailed, Version: version(), Executable: p.Executable, Surroundings: surroundings(),
		Say:        o.notes.add,
		WatchEvery: o.every, Watch: func(c *iojob.Clients) { watchErr = errors.Join(watchErr, o.write(out, c)) },
	})
	if err == nil {
		err = errors.Join(watchErr, o.write(out, clients))
	}
	if err = errors.Join(err, closeOutput()); err != nil {
		return err
	}
	if stop.stopped() {
		return exit(diag.ExitInterrupted)
	}
	if err := clients.Failed(); err != nil {
		return &diag.Error{Code: "host-failed", Message: err.Error(), Exit: diag.ExitUndecided}
	}
	return nil
}

// serveHost is the other end: what bragg io --hosts starts on each host.
func (p *Process) serveHost(ctx context.Context) int {
	return iohosts.Serve(ctx, iohosts.Program{
		Arguments: p.Arguments[1:], Version: version(), Surroundings: surroundings(), Executable: p.Executable,
		In: p.Stdin, Out: p.Stdout, Errors: p.Stderr, Exit: p.Exit,
	})
}
