// Package command implements bragg io: it parses fio's command line and runs it with packages iojob and, with --hosts,
// iohosts.
//
//	New ──▶ probe, for --version and its like ──▶ readInvocation ──▶ runJobs, runOnHosts ──▶ fio's reports
package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/fio/fiojob/syntax"
	"github.com/braggdev/bragg/internal/fio/fioreport"

	"github.com/spf13/cobra"

	"github.com/braggdev/bragg/internal/console"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/fio/iohosts"
	"github.com/braggdev/bragg/internal/fio/iojob"
	"github.com/braggdev/bragg/internal/load/blockdev"
)

// New returns the command io of a machine with this much memory.
func New(p *console.Process, memoryBytes int64) *cobra.Command {
	return &cobra.Command{
		Use:   "io [OPTIONS] JOBFILE...",
		Short: "Run fio job files with the native engine, in place of fio",
		Long: "Io takes the command line of fio: job files, or jobs given as --name=… --rw=… --size=…. It prints what fio\n" +
			"prints, as text, JSON or terse lines. Files are made and filled like fio's; writing to a block device needs\n" +
			"--allow-device. An option that only fio has is an error that names it.\n\n" +
			"  --output-format=normal|json|json+|terse   several with commas\n" +
			"  --output=FILE                             instead of standard output\n" +
			"  --section=NAME                            only these jobs; may be repeated\n" +
			"  --runtime=TIME                            where the jobs have none, like every option before the first --name\n" +
			"  --status-interval=TIME                    the report as it stands, as a whole document each time\n" +
			"  --intervals=FILE, --intervals-every=TIME  what each row did in each second, as lines of JSON, while it runs\n" +
			"  --metrics-listen=HOST:PORT                Prometheus metrics at /metrics while it runs; port 0 takes a free one\n" +
			"  --plan=FILE, --plan-operations=N          what would be done, as lines of JSON, without doing it; N a clone at most\n" +
			"  --read_iolog=FILE, --write_iolog=FILE     options of jobs: replay a recording, make one. docs/guides/replay.md says more\n" +
			"  --parse-only, --showcmd, --readonly       check, print the equivalent command, refuse writes\n" +
			"  --fio-exact, --strict                     read doubtful text as fio does; refuse it\n" +
			"  --warnings-fatal                          a warning about the job file is an error\n" +
			"  --terse-version=2|3|4|5                   layout of terse lines\n" +
			"  --aux-path=DIR                            states of verification and verify_dump go there\n" +
			"  --version, --cmdhelp=OPTION|all, --enghelp=ENGINE\n" +
			"  --backend=NAME                            does the I/O whatever ioengine says: io_uring, libaio, psync, pvsync2,\n" +
			"                                            mmap, null\n" +
			"  --backlog=work-off|drop|drop:TIME         operations of a rate that are late: do them all, or drop what is later\n" +
			"      than 10ms or TIME and count it\n" +
			"  --allow-device=PATH                       may be written, once it is proved to be the one that is meant by\n" +
			"      --device-serial, --device-wwn, or --device-size with --device-link; --device-overwrite=NAME for each thing\n" +
			"      found on it. docs/guides/devices.md says more\n" +
			"  --hosts=A,B or --hosts=@FILE              run on these hosts over ssh, started together and merged: [user@]host[:port].\n" +
			"      ${BRAGG_HOST} and ${BRAGG_HOST_NUMBER} differ between them. --ssh-option=KEY=VALUE for ssh -o, --without-failed-hosts,\n" +
			"      --keep-on-hosts, --host-folder=DIR, --same-seed, --device-host=HOST behind --allow-device. docs/guides/hosts.md says more",
		Example: "  bragg io job.fio\n  bragg io --hosts=node1,root@node2:2222 job.fio\n  bragg io --name=test --rw=randread --bs=4k --size=1g --iodepth=32 --ioengine=io_uring --direct=1\n" +
			"  bragg io job.fio --output-format=json --output=result.json",
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if slices.Contains(args, "--help") || slices.Contains(args, "-h") || len(args) == 0 {
				return cmd.Help()
			}
			if probed, err := probe(p, args); probed {
				return err
			}
			made, err := readInvocation(p, args, memoryBytes)
			if err != nil {
				return err
			}
			return runJobs(cmd.Context(), p, made)
		},
	}
}

// invocation is a command line of io.
type invocation struct {
	jobs      []fiojob.Job
	global    []syntax.Option
	own       map[string][]syntax.Option // by position of the job's section
	formats   []string
	output    string
	check     bool
	showcmd   bool
	readonly  bool
	exact     bool // reads values exactly as fio does
	backend   string
	devices   []device
	every     time.Duration
	streams   streams
	hosts     hosts
	dropAfter time.Duration // of operations of a rate; 0: never
	terse     int           // version of terse lines; 0: the default one
	fatal     bool          // warnings are errors
	states    string        // folder of verification states; "": the current one
	notes     notes
	machine   iohosts.Surroundings
}

func runJobs(ctx context.Context, p *console.Process, o *invocation) (err error) {
	defer func() {
		if err != nil {
			o.notes.failed(p.Stderr)
		}
	}()
	if o.readonly {
		for _, j := range o.jobs {
			if j.Writes() {
				return &diag.Error{Code: "readonly", Message: fmt.Sprintf("job %q writes, and --readonly forbids it", j.Name), Exit: diag.ExitRefused}
			}
		}
	}
	if o.showcmd || o.check {
		return showJobs(p, o)
	}
	if o.streams.plan != "" {
		return writePlan(p, o)
	}
	if err := o.streams.check(o.output); err != nil {
		return err
	}
	if o.hosts.wanted() {
		return runOnHosts(ctx, p, o)
	}
	stop, end := p.WatchSignals(ctx, p.Saying("stopping; the report is of what was done"))
	defer end()
	out, closeOutput, err := openOutput(p, o.output)
	if err != nil {
		return err
	}
	options := iojob.Options{
		Folder: p.Directory, Backend: o.backend, OpenDevice: o.open, Say: o.notes.add, StateFolder: p.Path(o.states),
		WatchEvery: o.every, AllowDevice: o.allows, ReadOnly: o.readonly, LogsAsFio: o.exact, DropAfter: o.dropAfter,
	}
	closeStreams, err := openStreams(p, &o.streams, &options)
	if err != nil {
		return errors.Join(err, closeOutput())
	}
	if slices.Contains(o.formats, "normal") {
		if err := fioreport.WriteHead(out, o.jobs); err != nil {
			return errors.Join(err, closeStreams(), closeOutput())
		}
	}
	o.notes.showIn(out, o)
	var watchErr error
	options.Watch = func(r *fioreport.Report) { watchErr = errors.Join(watchErr, o.write(out, r)) }
	report, err := iojob.Run(stop.Begun, o.jobs, options)
	err = errors.Join(err, closeStreams())
	if report != nil {
		err = errors.Join(err, watchErr, o.write(out, report)) // even if files of jobs could not be removed
	}
	if err = errors.Join(err, closeOutput()); err != nil {
		return err
	}
	return o.outcome(report, stop.Stopped())
}

// outcome returns the exit code: interrupted, or undecided if a job failed.
func (o *invocation) outcome(report *fioreport.Report, stopped bool) error {
	if stopped {
		return console.ExitWith(diag.ExitInterrupted)
	}
	for _, row := range report.Rows {
		if row.Err != nil {
			return &diag.Error{Code: "job-failed", Message: fmt.Sprintf("job %q", row.Name), Err: row.Err, Exit: diag.ExitUndecided}
		}
	}
	if report.LogFault != "" {
		return &diag.Error{Code: "logs-incomplete", Message: "the report is complete, the logs are not", Err: errors.New(report.LogFault), Exit: diag.ExitUndecided}
	}
	return nil
}

// device is a block device that may be written to, and its consent.
type device struct {
	host    string // "": on all of --hosts
	path    string
	consent blockdev.Consent
}

// open checks a device with its consent and holds it; there is no consent for devices that were not named.
func (o *invocation) open(path string) (*os.File, error) {
	var consent blockdev.Consent
	for _, d := range o.devices {
		if d.path == path {
			consent = d.consent
		}
	}
	f, _, err := blockdev.Open(path, consent, os.O_RDWR)
	return f, err
}

// allows reports whether a device was named on the command line.
func (o *invocation) allows(path string) bool {
	return slices.ContainsFunc(o.devices, func(d device) bool { return d.path == path })
}

// report is the results of jobs, here or on hosts.
type report interface {
	WriteText(w io.Writer) error
	WriteTerse(w io.Writer, o fioreport.Terse) error
	WriteJSON(w io.Writer, l fioreport.Labels) error
}

func (o *invocation) write(w io.Writer, r report) error {
	labels := fioreport.Labels{
		Version: versionText(false), Notes: o.notes.all(), Global: o.global,
		Own: func(j *fiojob.Job) []syntax.Option { return o.own[j.Pos.String()] },
	}
	o.notes.mu.Lock()
	defer o.notes.mu.Unlock()
	var errs []error
	for _, format := range o.formats {
		switch format {
		case "normal":
			errs = append(errs, r.WriteText(w))
		case "terse":
			errs = append(errs, r.WriteTerse(w, fioreport.Terse{Layout: o.terse, Release: fioreport.FormatVersion}))
		default:
			labels.Bins = format == "json+"
			errs = append(errs, r.WriteJSON(w, labels))
		}
	}
	if buffered, ok := w.(*bufio.Writer); ok {
		errs = append(errs, buffered.Flush()) // readers expect each report when it is made
	}
	return errors.Join(errs...)
}

// openOutput opens the destination of the report.
func openOutput(p *console.Process, name string) (io.Writer, func() error, error) {
	if name == "" || name == "-" {
		w := bufio.NewWriter(p.Stdout)
		return w, w.Flush, nil
	}
	f, err := os.Create(p.Path(name))
	if err != nil {
		return nil, nil, err
	}
	w := bufio.NewWriter(f)
	return w, func() error { return errors.Join(w.Flush(), f.Close()) }, nil
}

// showJobs checks jobs and, if requested, prints each file's command.
func showJobs(p *console.Process, o *invocation) error {
	if !o.showcmd {
		return nil
	}
	var words []string
	for _, j := range o.jobs {
		words = append(words, "--name="+j.Name)
		words = append(words, j.Printed(nil)...)
	}
	for i, w := range words {
		if !strings.HasPrefix(w, "--") {
			words[i] = "--" + w
		}
	}
	_, err := fmt.Fprintf(p.Stdout, "fio %s\n", strings.Join(words, " "))
	return err
}
