package iojob

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/fio/iolog"
	"github.com/braggdev/bragg/internal/load/ioengine"
	"github.com/braggdev/bragg/internal/unit"
)

// A log may come from another machine or user: it names files and the operations on them. A job that replays one uses
// regular files that the log names, as in fio, but a block device only if the job itself or the command line names it too.

// ioLogs are the logs of one run: those to replay, each scanned once, and those to write.
type ioLogs struct {
	read    []readLog
	written []string
	files   []*os.File
}

type readLog struct {
	path    string
	options iolog.Options
	log     *iolog.Log
}

// open scans a log, unless another clone has done so.
func (l *ioLogs) open(path string, o iolog.Options, say func(*iolog.Log)) (*iolog.Log, error) {
	for _, r := range l.read {
		if r.path == path && r.options == o {
			return r.log, nil
		}
	}
	log, err := iolog.Open(path, o)
	if err != nil {
		return nil, err
	}
	l.read = append(l.read, readLog{path, o, log})
	say(log)
	return log, nil
}

// close closes all logs.
func (l *ioLogs) close() {
	for _, r := range l.read {
		_ = r.log.Close() // it was only read
	}
	for _, f := range l.files {
		_ = f.Close() // its writer has flushed and checked it
	}
}

// taken returns the file for the log that a clone writes. In fio, all clones write into one file; here each has its own:
// NAME, NAME.1, NAME.2 …
func (l *ioLogs) taken(name, folder string) string {
	if name == "" {
		return ""
	}
	if folder != "" && !filepath.IsAbs(name) {
		name = filepath.Join(folder, name)
	}
	own := name
	for i := 1; slices.Contains(l.written, own); i++ {
		own = name + "." + strconv.Itoa(i)
	}
	l.written = append(l.written, own)
	return own
}

// create makes the file of a log. It replaces an older log, but no other file that has content.
func (l *ioLogs) create(path string) (*os.File, error) {
	fail := func(err error) (*os.File, error) {
		return nil, &diag.Error{Code: "write-iolog", Message: fmt.Sprintf("write iolog %q", path), Err: err, Exit: diag.ExitData}
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return fail(err)
	}
	info, err := f.Stat()
	start := make([]byte, len(logStart))
	if err == nil && info.Mode().IsRegular() && info.Size() > 0 {
		if n, _ := f.ReadAt(start, 0); string(start[:n]) != logStart {
			err = errors.New("the file is there and no log")
		} else {
			err = f.Truncate(0)
		}
	}
	if err == nil && info.Mode()&os.ModeDevice != 0 && info.Mode()&os.ModeCharDevice == 0 {
		err = errors.New("it is a block device")
	}
	if err != nil {
		_ = f.Close() // nothing was written
		return fail(err)
	}
	l.files = append(l.files, f)
	return f, nil
}

const logStart = "fio version "

// replayOptions are the options of a job for reading its log.
func replayOptions(r *fiojob.Replay, asFio bool) iolog.Options {
	o := iolog.Options{
		Redirect: r.Redirect, SpeedPercent: int64(r.SpeedPercent), Scale: r.Scale, Align: r.Align, WaitsOfFio: asFio,
	}
	for _, word := range r.Skip {
		switch word {
		case "read":
			o.Skip[iolog.Read] = true
		case "write":
			o.Skip[iolog.Write] = true
		case "trim":
			o.Skip[iolog.Trim] = true
		case "sync":
			o.Skip[iolog.Sync], o.Skip[iolog.DataSync] = true, true
		}
	}
	return o
}

// replayed is the path of the log that a clone replays.
func (c *clone) replayed(o *Options) string {
	path := c.job.Replay.Log(c.index)
	if o.Folder != "" && !filepath.IsAbs(path) {
		path = filepath.Join(o.Folder, path)
	}
	return path
}

// makes reports whether a preceding job writes a log.
func (l *ioLogs) makes(path string) bool { return slices.Contains(l.written, path) }

// planLater plans and lays out the files of clones that replay logs of jobs before them. It returns the errors of clones
// that cannot run; earlier jobs keep their results.
func (r *runner) planLater(ctx context.Context, clones []*clone) map[*clone]error {
	faults := map[*clone]error{}
	for _, c := range clones {
		if !c.later {
			continue
		}
		c.later = false
		if err := r.planFromLog(ctx, c); err != nil {
			faults[c] = err
		}
	}
	r.disks.Add(r.holdings.watched())
	return faults
}

func (r *runner) planFromLog(ctx context.Context, c *clone) error {
	if err := c.planReplay(&r.options, r.iologs); err != nil {
		return err
	}
	if err := r.checkClone(c); err != nil {
		return err
	}
	return r.holdings.layOut(ctx, []*clone{c}, r.options)
}

// planReplay gives a clone the files of its log.
func (c *clone) planReplay(o *Options, logs *ioLogs) error {
	j := &c.job
	path := c.replayed(o)
	log, err := logs.open(path, replayOptions(&j.Replay, o.LogsAsFio), func(l *iolog.Log) { o.sayReplay(l, &j.Replay) })
	if err != nil {
		return err
	}
	c.log = log
	if c.index == 0 {
		o.sayWithoutEffect(j)
	}
	if o.ReadOnly && (log.Operations[iolog.Write] > 0 || log.Operations[iolog.Trim] > 0) {
		return &diag.Error{
			Code: "readonly", Message: fmt.Sprintf("iolog %q writes, and --readonly forbids it", path), Exit: diag.ExitRefused,
		}
	}
	untouched := j.IOEngine == "null" || o.Backend == "null"
	for i := range log.Files {
		f, err := c.replayFile(&log.Files[i], o, untouched)
		if err != nil {
			return err
		}
		c.files = append(c.files, f)
	}
	return nil
}

// replayFile plans where operations on one file of a log go, and refuses files that they must not or cannot use.
func (c *clone) replayFile(logged *iolog.File, o *Options, untouched bool) (cloneFile, error) {
	f := cloneFile{path: logged.Name, reads: logged.Operations[iolog.Read] > 0, writes: logged.Writes(), size: logged.End}
	if untouched {
		return f, nil
	}
	if o.Folder != "" && !filepath.IsAbs(f.path) {
		f.path = filepath.Join(o.Folder, f.path)
	}
	have, err := sizeOf(f.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return f, c.refuse(fmt.Sprintf("use file %q", f.path), err, "replay_redirect=FILE replays the log on another one", diag.ExitData)
	}
	if err == nil && isDevice(f.path) {
		return f, c.replayDevice(&f, have, logged.End, o)
	}
	if kernelFile(f.path) {
		return f, c.refuse(fmt.Sprintf("the log names %q, which is a file of the kernel", f.path), nil, "", diag.ExitRefused)
	}
	f.need, f.size = logged.End, max(have, logged.End)
	if free, known := freeBytes(f.path); known && f.need-have > free {
		return f, c.refuse(fmt.Sprintf("the log goes up to %s of file %q, which has %s, and %s are free beside it",
			unit.FormatBytes(f.need), f.path, unit.FormatBytes(have), unit.FormatBytes(free)), nil,
			scaleHint(f.need, have+free), diag.ExitUnavailable)
	}
	return f, nil
}

// replayDevice refuses a block device that only the log names, or that is too small.
func (c *clone) replayDevice(f *cloneFile, have, end int64, o *Options) error {
	f.size = have
	declared := c.job.Replay.Redirect != ""
	for _, name := range c.job.Filenames {
		if o.Folder != "" && !filepath.IsAbs(name) {
			name = filepath.Join(o.Folder, name)
		}
		declared = declared || sameFile(name, f.path)
	}
	if !declared && (o.AllowDevice == nil || !o.AllowDevice(f.path)) {
		return c.refuse(fmt.Sprintf("the log names device %q, which the job does not", f.path), nil,
			"if it is meant, add filename="+f.path+"; replay_redirect=FILE replays the log on another one", diag.ExitRefused)
	}
	if have < end {
		return c.refuse(fmt.Sprintf("the log goes up to %s of device %q, which has %s", unit.FormatBytes(end), f.path,
			unit.FormatBytes(have)), nil, scaleHint(end, have), diag.ExitUnavailable)
	}
	return nil
}

func (c *clone) refuse(what string, err error, hint string, code int) error {
	return &diag.Error{
		Code: "replay", Exit: code, Err: err, Hint: hint,
		Message: fmt.Sprintf("job %q: replay iolog %q: %s", c.job.Name, c.log.Path, what),
	}
}

// scaleHint names the divisor with which a log fits.
func scaleHint(need, have int64) string {
	if have <= 0 {
		return "replay_redirect=FILE replays the log on another file or device"
	}
	return fmt.Sprintf("replay_scale=%d divides its offsets so that they fit; replay_align=4096 keeps them aligned", need/have+1)
}

func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// kernelFile reports whether a path is below /proc or /sys, where a write is a command.
func kernelFile(path string) bool {
	if to, err := filepath.EvalSymlinks(path); err == nil {
		path = to
	}
	path, _ = filepath.Abs(path)
	return strings.HasPrefix(path, "/proc/") || strings.HasPrefix(path, "/sys/")
}

// touches reports whether a clone reads from or writes to one of its files.
func (c *clone) touches(f *cloneFile) (reads, writes bool) {
	if c.log != nil {
		return f.reads, f.writes
	}
	return c.job.ReadWrite != "write" && c.job.ReadWrite != "randwrite", c.job.Writes()
}

// sayReplay reports what a log holds, and warns of doubtful parts.
func (o *Options) sayReplay(l *iolog.Log, r *fiojob.Replay) {
	for _, w := range l.Warnings {
		o.say("%s: warning: %s", w.Pos, w.Message)
	}
	var parts []string
	for k := range iolog.KindCount {
		kind := iolog.Kind(k)
		switch n := l.Operations[k]; {
		case n > 0 && kind <= iolog.Trim:
			parts = append(parts, fmt.Sprintf("%d %s (%s)", n, kind, unit.FormatBytes(l.Bytes[k])))
		case n > 0:
			parts = append(parts, fmt.Sprintf("%d %s", n, kind))
		}
	}
	pace := "in " + time.Duration(l.Nanos).Round(time.Millisecond).String()
	if r.NoStall {
		pace = "as fast as possible"
	}
	o.say("replaying %s (%s): %s; %s, on %d files", l.Path, l.Version, strings.Join(parts, ", "), pace, len(l.Files))
}

// besideReplay lists options that have no effect on a replay.
const besideReplay = `
	rate rate_iops rate_process rwmixread rwmixwrite bsrange bssplit ba time_based loops number_ios io_size filesize offset
	offset_increment thinktime thinktime_blocks fsync fdatasync zonemode zonesize zoneskip percentage_random
	random_distribution norandommap directory verify serialize_overlap`

// sayWithoutEffect names the options of a job that have no effect because it replays a log.
func (o *Options) sayWithoutEffect(j *fiojob.Job) {
	var idle []string
	for key := range strings.FieldsSeq(besideReplay) {
		if j.Has(key) {
			idle = append(idle, key)
		}
	}
	if len(idle) > 0 {
		o.say("%s: warning: job %q: the log says what is done, and when, once: no effect have %s", j.Pos, j.Name, strings.Join(idle, ", "))
	}
}

// prepare opens the files of a clone and the log that it writes.
func (r *runner) prepare(ctx context.Context, c *clone) (ioengine.Run, error) {
	run, err := ioengine.Generator{Backend: r.options.Backend, Replay: c.log}.PrepareJobs(ctx, r.workload(c, 0), []fiojob.Job{c.job})
	if err == nil {
		if err = c.preReadFiles(); err != nil {
			err = errors.Join(err, run.Close())
		}
	}
	if err != nil || c.logged == "" {
		return run, err
	}
	f, err := r.iologs.create(c.logged)
	if err == nil {
		err = run.Record(f, c.logged, c.logNames())
	}
	if err != nil {
		return ioengine.Run{}, errors.Join(err, run.Close())
	}
	return run, nil
}

// logNames are the names of the clone's files in the log that it writes, the same as in fio.
func (c *clone) logNames() []string {
	var names []string
	for _, f := range c.files {
		names = append(names, f.path)
	}
	return names
}
