package command

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/braggdev/bragg/internal/console"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/fio/fiojob/syntax"
	"github.com/braggdev/bragg/internal/fio/iohosts"
	"github.com/braggdev/bragg/internal/load/ioengine/program"
	"github.com/braggdev/bragg/internal/unit"
)

// arguments is a parsed command line of io.
type arguments struct {
	made     invocation
	files    []string
	sections []string
	words    []string // options of jobs
	reading  syntax.Reading
}

// ignored are options of fio's command line that have no effect here; those of valued take the next word if they have no
// equals sign.
var (
	ignored = []string{
		"eta", "eta-newline", "eta-interval", "minimal-eta", "max-jobs", "alloc-size", "thread", "append-terse", "bandwidth-log",
	}
	valued = []string{
		"output", "output-format", "section", "status-interval", "backend", "backlog", "allow-device", "device-serial", "device-wwn",
		"device-size", "device-link", "device-overwrite", "eta", "eta-newline", "eta-interval", "max-jobs", "alloc-size", "aux-path",
		"terse-version", "plan", "plan-operations", "intervals", "intervals-every", "metrics-listen",
		"hosts", "ssh-option", "host-folder", "device-host",
	}
)

func readInvocation(p *console.Process, args []string, memoryBytes int64) (*invocation, error) {
	a := &arguments{}
	a.made.machine = machine(memoryBytes)
	words, rest := fiojob.Arguments(args)
	a.words = words
	for i := 0; i < len(rest); i++ {
		word := rest[i]
		if !strings.HasPrefix(word, "--") || word == "--" {
			a.files = append(a.files, word)
			continue
		}
		key, value, hasValue := strings.Cut(strings.TrimPrefix(word, "--"), "=")
		if !hasValue && slices.Contains(valued, key) && i+1 < len(rest) {
			i++
			value = rest[i]
		}
		if err := a.option(key, value, word); err != nil {
			return nil, err
		}
	}
	if len(a.made.formats) == 0 {
		a.made.formats = []string{"normal"}
	}
	if err := readHosts(p, &a.made); err != nil {
		return nil, err
	}
	return &a.made, readJobs(p, a)
}

// option handles one option of Bragg or of fio's command line. Other words are left to the parser of jobs, which reports
// errors in them.
func (a *arguments) option(key, value, word string) error {
	o := &a.made
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
	case "fio-exact":
		a.reading, o.exact = syntax.Exact, true
	case "strict":
		a.reading = syntax.Strict
	case "readonly":
		o.readonly = true
	case "backlog":
		after, err := program.ParseBacklog(value)
		o.dropAfter = after
		return err
	case "backend":
		o.backend = value
	case "allow-device":
		o.devices = append(o.devices, device{path: value})
	case "device-serial", "device-wwn", "device-size", "device-link", "device-overwrite":
		return a.consent(key, value)
	case "warnings-fatal":
		o.fatal = true
	case "aux-path":
		o.states = value
	case "terse-version":
		if !slices.Contains([]string{"2", "3", "4", "5"}, value) {
			return usage("--terse-version=%s: want 2, 3, 4 or 5", strconv.Quote(value))
		}
		o.terse = int(value[0] - '0')
	case "status-interval":
		with, err := fiojob.Job{}.With("runtime", value) // fio reads both in the same way
		if err != nil || with.Runtime <= 0 {
			return usage("--status-interval=%s: invalid time", value)
		}
		o.every = with.Runtime
	case "client", "server", "daemonize", "remote-config", "trigger-file", "trigger", "trigger-remote":
		return usage("--%s belongs to fio's client and server: bragg io --hosts=a,b runs jobs on hosts over ssh, and they need no server", key)
	default:
		if known, err := o.streams.option(key, value); known || err != nil {
			return err
		}
		if slices.Contains(ioHostOptions, key) {
			return o.hosts.option(o, key, value)
		}
		if !slices.Contains(ignored, key) {
			a.words = append(a.words, word)
		}
	}
	return nil
}

// consent adds to the consent for the last device that was named.
func (a *arguments) consent(key, value string) error {
	n := len(a.made.devices)
	if n == 0 {
		return usage("--%s must follow the --allow-device that it refers to", key)
	}
	c := &a.made.devices[n-1].consent
	switch key {
	case "device-serial":
		c.Serial = value
	case "device-wwn":
		c.WWN = value
	case "device-link":
		c.Link = value
	case "device-overwrite":
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

func (a *arguments) format(value string) error {
	for name := range strings.SplitSeq(value, ",") {
		if !slices.Contains([]string{"normal", "json", "json+", "terse"}, name) {
			return usage("--output-format=%s: unknown format %q", value, name)
		}
		if !slices.Contains(a.made.formats, name) { // wrappers repeat it for each job
			a.made.formats = append(a.made.formats, name)
		}
	}
	return nil
}

func usage(format string, args ...any) error {
	return &diag.Error{Code: "usage", Message: fmt.Sprintf(format, args...), Hint: "bragg io --help", Exit: diag.ExitUsage}
}

// readJobs parses the jobs of the command line and the job files.
func readJobs(p *console.Process, a *arguments) error {
	var inputs []fiojob.Input
	if len(a.words) > 0 {
		inputs = append(inputs, fiojob.Input{Words: a.words})
	}
	named := slices.ContainsFunc(a.words, func(w string) bool { return strings.HasPrefix(strings.TrimLeft(w, "-"), "name") })
	if len(a.files) == 0 && !named {
		return usage("bragg io needs a job file or --name")
	}
	for _, name := range a.files {
		text, err := readJobFile(p, name)
		if err != nil {
			return err
		}
		inputs = append(inputs, fiojob.Input{Name: name, Text: text})
	}
	surroundings, closeRoot := jobSurroundings(p, a.files, a.made.machine)
	defer closeRoot()
	surroundings.Reading, surroundings.Sections = a.reading, a.sections
	surroundings = a.made.hosts.record(inputs, surroundings)
	file, list := fiojob.ParseAll(inputs, surroundings)
	list = append(list, file.Unsupported()...)
	if a.made.fatal {
		for i := range list {
			list[i].Severity = diag.SeverityError
		}
	}
	if list.HasErrors() {
		return list.Err()
	}
	if o := &a.made; len(list) > 0 && (o.check || o.showcmd || o.streams.plan != "") {
		_ = diag.Render(p.Stderr, list) // a warning that cannot be written must not end the check
	} else {
		o.notes.addAll(list)
	}
	a.made.jobs, a.made.own = file.Jobs(), map[string][]syntax.Option{}
	for _, s := range file.Sections {
		if s.Global {
			a.made.global = append(a.made.global, s.Options...)
			continue
		}
		a.made.own[s.Pos.String()] = s.Options
	}
	return nil
}

// jobFileBytesMax bounds the size of a job file.
const jobFileBytesMax = 1 << 20

func readJobFile(p *console.Process, name string) (string, error) {
	in := p.Stdin
	if name != "-" {
		f, err := os.Open(p.Path(name))
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

// jobSurroundings is what a user's own job file may access: the environment, the machine, and the files below the folder of
// the first one; pattern files also below the current folder, where fio reads them.
func jobSurroundings(p *console.Process, files []string, machine iohosts.Surroundings) (o fiojob.Options, closeRoot func()) {
	o = fiojob.Options{
		Host:     true,
		Env:      func(key string) (string, bool) { v := p.Getenv(key); return v, v != "" },
		Windows:  runtime.GOOS == "windows",
		PageSize: machine.PageSize, CPUs: machine.CPUs, MemoryMB: machine.MemoryMB,
	}
	folder := cmp.Or(p.Directory, ".")
	work, err := os.OpenRoot(folder)
	if err == nil {
		o.WorkFS = work.FS()
	}
	closeAll := func() {
		if work != nil {
			_ = work.Close()
		}
	}
	if len(files) > 0 && files[0] != "-" {
		folder = filepath.Dir(p.Path(files[0]))
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return o, closeAll // include then reports that it cannot read other files
	}
	o.FS = root.FS()
	return o, func() {
		_ = root.Close()
		closeAll()
	}
}
