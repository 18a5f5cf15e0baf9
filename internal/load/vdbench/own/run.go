package own

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/program"
	"github.com/braggdev/bragg/internal/load/vdbench/output"
	"github.com/braggdev/bragg/internal/stat"
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
	table    output.Table
	part     string // a line of flatfile.html that is not complete
	offset   int64
	runs     map[string]bool
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
	in := &running{workload: w, own: o, said: program.NewTranscript(outputKept), runs: map[string]bool{}}
	if err := in.prepare(); err != nil {
		_ = in.Close()
		return nil, fmt.Errorf("prepare workload %q: %w", w.Name, err)
	}
	return in, nil
}

// prepare finds the program and writes its parameter file. The room refuses disks that are block devices: vdbench would open them by
// itself, without the checks that protect foreign data.
func (in *running) prepare() (err error) {
	if in.path, err = findHome(); err != nil {
		return err
	}
	if in.room, err = program.OpenRoom(&in.workload, program.RoomName{Name: "vdbench"}, in.own.luns...); err != nil {
		return err
	}
	if err := in.checkPaths(); err != nil {
		return err
	}
	if err := in.room.Clear(ownFolder); err != nil {
		return err
	}
	return in.room.WriteFile(ownFolder+"/run.parm", in.own.text(func(lun string) string {
		d, _ := in.workload.Device(lun)
		return d.Path
	}))
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
func (in *running) Engine() interval.Engine { return in.own.Engine() }

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
	return room.Close()
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
	folder := in.room.Path(ownFolder)
	p, err := program.Command{Path: in.path, Args: []string{"-f", folder + "/run.parm", "-o", folder + "/output"}, Dir: folder, Alone: true, Stdout: in.said, Stderr: in.said}.Start()
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
	if more := in.read(axis.Now(), out); err == nil {
		err = more
	}
	if err == nil && !stopped {
		err = in.conclude(out, failed)
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
			now := axis.Now()
			if err := in.read(now, out); err != nil {
				return err
			}
			out.Release(now)
		}
	}
}

// read counts the complete rows that flatfile.html has more than before.
func (in *running) read(now int64, out *program.Recorder) error {
	f, err := os.Open(in.room.Path(ownFolder, "output", "flatfile.html"))
	if err != nil {
		return nil // not yet
	}
	defer f.Close()
	text, err := io.ReadAll(io.NewSectionReader(f, in.offset, readMax))
	if err != nil {
		return err
	}
	in.offset += int64(len(text))
	lines := strings.Split(in.part+string(text), "\n")
	in.part = lines[len(lines)-1]
	if len(in.part) > readMax {
		return errors.New("read flatfile: a line without an end")
	}
	for _, line := range lines[:len(lines)-1] {
		r, is, err := in.table.Line(line)
		if err != nil {
			return err
		}
		if is && !r.Average {
			in.count(&r, now, out)
		}
	}
	return nil
}

// count counts one second of a run.
func (in *running) count(r *output.Row, now int64, out *program.Recorder) {
	in.runs[r.Run] = true
	reads := r.ReadPercent / 100
	if math.IsNaN(reads) {
		reads = 1
	}
	bytes := r.BytesPerOp
	if math.IsNaN(bytes) {
		bytes = 0
	}
	for kind, share := range []float64{reads, 1 - reads} {
		if n := math.Round(r.Rate * share); n >= 1 {
			out.Count(kind, now, uint64(n), uint64(n*bytes))
		}
	}
	out.Gauge(interval.GaugeValues{float64(len(in.runs))}, now)
}

// conclude judges the load by what vdbench printed, since its exit code says little, and reads its histogram.
func (in *running) conclude(out *program.Recorder, failed error) error {
	if r := output.Judge(in.said.String()); !r.Good() {
		text := strings.Join(r.Errors, "; ")
		if text == "" {
			text = "it does not say that it completed"
		}
		return &diag.Error{Code: "vdbench-failed", Exit: diag.ExitUndecided, Message: fmt.Sprintf("vdbench: %s", text), Err: failed, Hint: "vdbench.txt in the bundle has what it printed"}
	}
	text, err := os.ReadFile(in.room.Path(ownFolder, "output", "histogram.html"))
	if err != nil || len(text) > resultMax {
		return nil // the note says that latencies may be unknown
	}
	all, err := output.Histograms(string(text))
	if err != nil {
		return err
	}
	for kind := range 2 {
		sum := &stat.Histogram{}
		for i := range all {
			h, _ := []output.Buckets{all[i].Reads, all[i].Writes}[kind].Histogram(0)
			sum.Merge(h)
		}
		if sum.Count() > 0 {
			out.Latencies(kind, sum)
		}
	}
	return nil
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
