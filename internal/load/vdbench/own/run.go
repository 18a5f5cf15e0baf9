package own

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/blockdev"
	"github.com/braggdev/bragg/internal/load/program"
	"github.com/braggdev/bragg/internal/load/vdbench/output"
	"github.com/braggdev/bragg/internal/load/vdbench/parmfile"
)

// running is a load of the user's own vdbench.
type running struct {
	workload load.Workload
	own      *File
	path     string // of the program
	room     *program.Room
	said     *program.Transcript
	raw      []load.Output
	used     bool
	guard    blockdev.Guard
	counts   counts
}

const (
	ownLook    = 200 * time.Millisecond
	ownFolder  = "own"
	readMax    = 1 << 20 // of flatfile.html at once
	resultMax  = 8 << 20 // of histogram.html
	outputKept = load.OutputBytesMax / 2
)

var (
	_ load.Describer = (*running)(nil)
	_ load.Timed     = (*running)(nil)
	_ load.Teller    = (*running)(nil)
)

// Prepare finds the program and the disks.
func (o *File) Prepare(w load.Workload) (load.Instance, error) {
	if _, err := o.Plan(&w); err != nil {
		return nil, err
	}
	in := &running{workload: w, own: o, said: program.NewTranscript(outputKept)}
	if err := in.prepare(); err != nil {
		_ = in.Close()
		return nil, fmt.Errorf("prepare workload %q: %w", w.Name, err)
	}
	return in, nil
}

// prepare finds the program, takes the disks and writes its parameter file.
func (in *running) prepare() (err error) {
	if in.path, err = findHome(); err != nil {
		return err
	}
	w := &in.workload
	name := program.RoomName{Name: "vdbench", FileSystem: &in.own.fileSystem, Said: in.said}
	disks, devices, err := in.kindsOfDisks()
	if err != nil {
		return err
	}
	for _, d := range devices {
		if d.Held {
			continue
		}
		if _, err := in.guard.Admit(d.Path, d.Consent); err != nil {
			return fmt.Errorf("device %q: %w", d.Name, err)
		}
	}
	if in.own.disk != "" {
		disks = []string{in.own.disk}
	}
	if in.room, err = program.OpenRoom(w, name, disks...); err != nil || w.Prefill {
		return err
	}
	if err := in.checkPaths(); err != nil {
		return err
	}
	if err := in.room.Clear(ownFolder); err != nil {
		return err
	}
	if in.own.disk != "" {
		if err := in.room.Ready(in.own.disk); err != nil {
			return err
		}
	}
	at := places{
		lun: func(lun string) (string, int64) {
			d, _ := w.Device(lun)
			if slices.ContainsFunc(devices, func(d load.Device) bool { return d.Name == lun }) {
				return d.Path, cmp.Or(d.ActualBytes, d.SizeBytes)
			}
			return d.Path, 0
		},
		anchor: func(anchor string) string { return in.room.JoinedPath(in.tree(anchor)) },
	}
	for _, fsd := range in.own.file.Of(parmfile.FileSystem) {
		if err := os.MkdirAll(in.room.Path(in.tree(fsd.Text("anchor", ""))), 0o700); err != nil { // vdbench makes no folders above an anchor
			return err
		}
	}
	return in.room.WriteFile(ownFolder+"/run.parm", in.own.text(at))
}

// tree is the folder of an anchor in the room.
func (in *running) tree(anchor string) string {
	return fmt.Sprintf("%s/own-tree-%016x", program.DiskFolder(in.own.disk), load.KeyOf(0, anchor))
}

// kindsOfDisks tells disks that are files from block devices. vdbench opens block devices by itself: they are checked as those of native
// I/O are, and held as long as it runs.
func (in *running) kindsOfDisks() (files []string, devices []load.Device, err error) {
	for _, name := range in.own.luns {
		d, _ := in.workload.Device(name)
		info, err := os.Stat(d.Path)
		switch {
		case err != nil:
			return nil, nil, err
		case info.Mode().IsRegular():
			files = append(files, name)
		default:
			devices = append(devices, d)
		}
	}
	return files, devices, nil
}

// plainPath has no character that ends a path in a parameter file, or begins a comment or a variable there.
var plainPath = regexp.MustCompile(`^[A-Za-z0-9_./:+@-]+$`)

// checkPaths refuses paths that vdbench would read as others: it would cut "/my runs/sdb" at the blank and write to "/my".
func (in *running) checkPaths() error {
	paths := []string{in.room.Path()}
	for _, lun := range in.own.luns {
		d, _ := in.workload.Device(lun)
		paths = append(paths, d.Path)
	}
	for _, path := range paths {
		if !plainPath.MatchString(path) {
			return &diag.Error{Code: "path-not-passed", Exit: diag.ExitRefused, Message: fmt.Sprintf("the path %q cannot be written into a parameter file: vdbench would use another one", path),
				Hint: "keep runs in a folder whose path has only letters, digits and _./:+@- (--runs DIR)"}
		}
	}
	return nil
}

// Engine describes the load; see load.Describer.
func (in *running) Engine() interval.Engine {
	e := in.own.Engine()
	e.Backends = append(e.Backends, in.room.Storage()...)
	return e
}

// SetTime places the load on the run's axis; see load.Timed.
func (in *running) SetTime(zeroUnixNanos, startNanos int64) {
	in.workload.ZeroUnixNanos, in.workload.StartNanos = zeroUnixNanos, startNanos
}

// Outputs are the files and messages of vdbench; see load.Teller.
func (in *running) Outputs() []load.Output { return in.raw }

// Close releases the folder.
func (in *running) Close() error {
	in.used = true
	room := in.room
	if in.room = nil; room != nil {
		_ = os.RemoveAll(room.Path(ownFolder))
	}
	return errors.Join(room.Close(), in.guard.Close())
}

// Run runs vdbench; see load.Instance.
func (in *running) Run(ctx context.Context, sink load.Sink) error {
	if in.used {
		return fmt.Errorf("run workload %q: it ran before or is closed", in.workload.Name)
	}
	defer func() { _ = in.Close() }()
	w := in.workload
	axis := program.NewAxis(w.ZeroUnixNanos)
	axis.WaitUntil(ctx, w.StartNanos)
	out := &program.Recorder{Workload: w, Sink: sink, Gauges: interval.GaugeValues{0}}
	began := axis.Now()
	out.Begin(began)
	if w.Prefill {
		err := out.Beside(axis, func() error { return in.room.Ready(in.own.disk) })
		in.raw = []load.Output{{Name: "vdbench.txt", Text: in.said.String()}}
		out.Finish(axis.Now())
		return program.Outcome(ctx, w.Name, err)
	}
	folder := in.room.Path(ownFolder)
	in.counts = counts{own: in.own, path: in.room.Path(ownFolder, "output"), axis: axis, last: began, out: out}
	p, err := in.room.Joined(program.Command{Path: in.path, Args: []string{"-f", folder + "/run.parm", "-o", folder + "/output"}, Dir: folder, Alone: true, Stdout: in.said, Stderr: in.said,
		Env: append(os.Environ(), "TZ=UTC")}).Start() // which rows are stamped with
	if err != nil {
		out.Finish(axis.Now())
		return installation.Missing("start vdbench: %v", err)
	}
	limited, cancel := context.WithCancel(ctx)
	defer cancel()
	if w.Runtime > 0 {
		limited, cancel = context.WithTimeout(ctx, w.Runtime-time.Duration(axis.Now()-began))
		defer cancel()
	}
	err = in.follow(limited, axis, out, p)
	stopped := limited.Err() != nil
	p.Kill()
	failed := p.Wait()
	if more := in.counts.read(); err == nil {
		err = more
	}
	if err == nil && !stopped {
		err = in.conclude(failed)
	}
	in.keep()
	end := axis.Now()
	if w.Runtime > 0 && stopped && ctx.Err() == nil {
		end = began + int64(w.Runtime)
	}
	out.Finish(end)
	return program.Outcome(ctx, w.Name, err)
}

// follow reads what vdbench has written until it has ended.
func (in *running) follow(ctx context.Context, axis program.Axis, out *program.Recorder, p *program.Process) error {
	tick := time.NewTicker(ownLook)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-p.Done():
			return nil
		case <-tick.C:
			if err := in.counts.read(); err != nil {
				return err
			}
			out.Release(in.counts.known())
		}
	}
}

// conclude judges the load by what vdbench printed, since its exit code says little, and reads its histogram.
func (in *running) conclude(failed error) error {
	if r := output.Judge(in.said.String()); !r.Good() {
		text := strings.Join(r.Errors, "; ")
		if text == "" {
			text = "it does not say that it completed"
		}
		return &diag.Error{Code: "vdbench-failed", Exit: diag.ExitUndecided, Message: fmt.Sprintf("vdbench: %s", text), Err: failed, Hint: "vdbench.txt in the bundle has what it printed"}
	}
	return in.counts.latencies()
}

// keep takes the files of vdbench into the bundle.
func (in *running) keep() {
	in.raw = append(in.raw, load.Output{Name: "vdbench.txt", Text: in.said.String()})
	for _, name := range []string{"run.parm", "output/flatfile.html", "output/histogram.html", "output/errorlog.html", "output/totals.html"} {
		if text, err := os.ReadFile(in.room.Path(ownFolder, name)); err == nil {
			in.raw = append(in.raw, load.Output{Name: strings.TrimPrefix(name, "output/"), Text: strings.ToValidUTF8(string(text[:min(len(text), outputKept)]), "?")})
		}
	}
}
