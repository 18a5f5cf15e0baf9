package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/fiojob"
	"github.com/braggdev/bragg/internal/session"
	"github.com/braggdev/bragg/internal/unit"
)

// ioArguments is a command line of io, sorted.
type ioArguments struct {
	order    ioOrder
	files    []string
	sections []string
	defaults []string // options before the first --name, as key=value
	named    strings.Builder
	inName   bool
}

// ioIgnored are options of fio's command line that change nothing here.
var ioIgnored = []string{
	"eta", "eta-newline", "eta-interval", "minimal-eta", "max-jobs", "alloc-size", "aux-path", "warnings-fatal", "thread",
	"terse-version", "append-terse", "bandwidth-log",
}

func (p *Process) readIO(args []string) (*ioOrder, error) {
	a := &ioArguments{}
	for _, word := range args {
		if !strings.HasPrefix(word, "--") || word == "--" {
			a.files = append(a.files, word)
			continue
		}
		key, value, hasValue := strings.Cut(strings.TrimPrefix(word, "--"), "=")
		if err := a.option(key, value, hasValue); err != nil {
			return nil, err
		}
	}
	if len(a.order.formats) == 0 {
		a.order.formats = []string{"normal"}
	}
	return &a.order, p.readJobs(a)
}

// option takes one option: ours, fio's own, or one of a job.
func (a *ioArguments) option(key, value string, hasValue bool) error {
	o := &a.order
	switch key {
	case "output":
		o.output = value
	case "output-format":
		return a.format(value)
	case "minimal":
		o.formats = []string{"terse"}
	case "section":
		a.sections = append(a.sections, value)
	case "parse-only":
		o.check = true
	case "showcmd":
		o.showcmd = true
	case "readonly":
		o.readonly = true
	case "backend":
		o.backend = value
	case "allow-device":
		o.devices = append(o.devices, ioDevice{path: value})
	case "device-serial", "device-wwn", "device-size", "device-link", "overwrite":
		return a.consent(key, value)
	case "status-interval":
		with, err := fiojob.Job{}.With("runtime", value) // fio reads both alike
		if err != nil || with.Runtime <= 0 {
			return usage("--status-interval=%s is no time", value)
		}
		o.every = with.Runtime
	case "client", "server", "daemonize", "remote-config", "trigger-file", "trigger", "trigger-remote":
		return usage("--%s belongs to fio's client and server, which bragg io does not have", key)
	default:
		if !slices.Contains(ioIgnored, key) {
			a.jobOption(key, value, hasValue)
		}
	}
	return nil
}

// consent adds to what was said of the last device that was named.
func (a *ioArguments) consent(key, value string) error {
	n := len(a.order.devices)
	if n == 0 {
		return usage("--%s stands behind the --allow-device that it is about", key)
	}
	c := &a.order.devices[n-1].consent
	switch key {
	case "device-serial":
		c.Serial = value
	case "device-wwn":
		c.WWN = value
	case "device-link":
		c.Link = value
	case "overwrite":
		c.Overwrite = append(c.Overwrite, strings.Split(value, ",")...)
	case "device-size":
		size, err := unit.ParseBytes(value)
		if err != nil {
			return usage("--device-size=%s: %v", value, err)
		}
		c.SizeBytes = size
	}
	return nil
}

func (a *ioArguments) format(value string) error {
	for name := range strings.SplitSeq(value, ",") {
		if !slices.Contains([]string{"normal", "json", "json+", "terse"}, name) {
			return usage("--output-format=%s: there is no format %q", value, name)
		}
		a.order.formats = append(a.order.formats, name)
	}
	return nil
}

// jobOption begins a job with name, and gives other options to it or, before the first, to all.
func (a *ioArguments) jobOption(key, value string, hasValue bool) {
	if key == "name" {
		a.inName = true
		fmt.Fprintf(&a.named, "[%s]\n", value)
		return
	}
	text := key
	if hasValue {
		text += "=" + value
	}
	if a.inName {
		fmt.Fprintln(&a.named, text)
		return
	}
	a.defaults = append(a.defaults, text)
}

func usage(format string, args ...any) error {
	return &diag.Error{Code: "usage", Message: fmt.Sprintf(format, args...), Hint: "bragg io --help", Exit: diag.ExitUsage}
}

// readJobs parses job files and the jobs of the command line, in this order, and keeps those of the sections asked for.
func (p *Process) readJobs(a *ioArguments) error {
	if len(a.files) == 0 && !a.inName {
		return usage("bragg io needs a job file or --name")
	}
	a.order.own = map[string][]fiojob.Option{}
	var list diag.List
	for _, name := range a.files {
		text, err := p.readJobFile(name)
		if err != nil {
			return err
		}
		list = append(list, a.parse(p, name, text, false)...)
	}
	if a.inName {
		list = append(list, a.parse(p, "command line", a.named.String(), true)...)
	}
	if list.HasErrors() {
		return list.Err()
	}
	if len(list) > 0 {
		_ = diag.Render(p.Stderr, list)
	}
	if len(a.order.jobs) == 0 {
		return usage("no job is in the sections %s", strings.Join(a.sections, ", "))
	}
	return nil
}

// parse adds the jobs of one text. Jobs of a later file wait for those before it, as if it began with a stonewall.
func (a *ioArguments) parse(p *Process, name, text string, commandLine bool) diag.List {
	file, list := fiojob.Parse(name, text, p.jobSurroundings(name))
	list = append(list, file.Unsupported()...)
	if list.HasErrors() {
		return list
	}
	for _, s := range file.Sections {
		if s.Global {
			a.order.global = append(a.order.global, s.Options...)
			continue
		}
		a.order.own[s.Pos.String()] = s.Options
	}
	groups := 0
	if n := len(a.order.jobs); n > 0 {
		groups = a.order.jobs[n-1].Group + 1
	}
	first := true
	for _, j := range file.Jobs() {
		if len(a.sections) > 0 && !slices.Contains(a.sections, j.Section) {
			continue
		}
		for _, option := range a.defaults {
			key, value, _ := strings.Cut(option, "=")
			if j.Has(key) {
				continue
			}
			with, err := j.With(key, value)
			if err != nil {
				list.Add(diag.Diagnostic{Code: "bad-option", Pos: diag.Position{File: "command line"}, Message: fmt.Sprintf("--%s: %v", option, err)})
				return list
			}
			j = with
			a.order.own[j.Pos.String()] = append(a.order.own[j.Pos.String()], fiojob.Option{Key: key, Value: value})
		}
		j.Group += groups
		if first && groups > 0 && !commandLine {
			j.Stonewall = true
		}
		first = false
		a.order.jobs = append(a.order.jobs, j)
	}
	return list
}

// jobFileBytesMax bounds what is read of a job file.
const jobFileBytesMax = 1 << 20

func (p *Process) readJobFile(name string) (string, error) {
	var in io.Reader = p.Stdin
	if name != "-" {
		f, err := os.Open(p.path(name))
		if err != nil {
			return "", &diag.Error{Code: "job-file", Message: fmt.Sprintf("read job file %q", name), Err: err, Exit: diag.ExitData}
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, jobFileBytesMax+1))
	if err == nil && len(text) > jobFileBytesMax {
		err = fmt.Errorf("it is larger than %d bytes", jobFileBytesMax)
	}
	if err != nil {
		return "", &diag.Error{Code: "job-file", Message: fmt.Sprintf("read job file %q", name), Err: err, Exit: diag.ExitData}
	}
	return string(text), nil
}

// jobSurroundings is what a job file of the user's own may see: the environment, the machine and the files beside it.
func (p *Process) jobSurroundings(name string) fiojob.Options {
	return fiojob.Options{
		Env:      func(key string) (string, bool) { v := p.Getenv(key); return v, v != "" },
		FS:       os.DirFS(filepath.Dir(p.path(name))),
		PageSize: int64(os.Getpagesize()), CPUs: int64(runtime.NumCPU()), MemoryMB: session.MemoryBytes() >> 20,
	}
}
