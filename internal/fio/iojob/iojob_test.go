package iojob_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/fio/fiojob/syntax"
	"github.com/braggdev/bragg/internal/fio/fioreport"
	"github.com/braggdev/bragg/internal/fio/iojob"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/testreq"
)

// parse reads a job file with @ replaced by the directory of the test.
func parse(t *testing.T, dir, text string) (string, *fiojob.File) {
	t.Helper()
	text = strings.ReplaceAll(text, "@", dir)
	file, list := fiojob.Parse("job.fio", text, fiojob.Options{Host: true})
	if list.HasErrors() {
		t.Fatal(list)
	}
	return text, file
}

func run(t *testing.T, dir, text string) *fioreport.Report {
	t.Helper()
	_, file := parse(t, dir, text)
	return runJobs(t, file)
}

func runJobs(t *testing.T, file *fiojob.File) *fioreport.Report {
	t.Helper()
	report, err := iojob.Run(t.Context(), file.Jobs(), iojob.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func labels(file *fiojob.File) fioreport.Labels {
	l := fioreport.Labels{Version: fioreport.FormatVersion}
	own := map[string][]syntax.Option{}
	for _, s := range file.Sections {
		if s.Global {
			l.Global = append(l.Global, s.Options...)
		} else {
			own[s.Pos.String()] = s.Options
		}
	}
	l.Own = func(j *fiojob.Job) []syntax.Option { return own[j.Pos.String()] }
	return l
}

// fio runs real fio in dir.
func fio(t *testing.T, dir, text string, args ...string) []byte {
	t.Helper()
	out, err := runFio(t, dir, text, args...)
	if err != nil {
		t.Fatalf("fio: %v\n%s", err, out)
	}
	return out
}

// fioAnyway runs real fio in dir and returns its document, whether or not jobs fail.
func fioAnyway(t *testing.T, dir, text string, args ...string) []byte {
	t.Helper()
	out, err := runFio(t, dir, text, args...)
	at := bytes.IndexByte(out, '{')
	if at < 0 {
		t.Fatalf("fio: %v\n%s", err, out)
	}
	return out[at:]
}

func runFio(t *testing.T, dir, text string, args ...string) ([]byte, error) {
	t.Helper()
	testreq.Program(t, "fio")
	path := filepath.Join(dir, "job.fio")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "fio", append(args, path)...)
	cmd.Dir = dir
	return cmd.Output()
}

const mixed = `[global]
directory=@
size=8m
bs=4k
ioengine=libaio
iodepth=4
direct=1
[mix]
rw=randrw
numjobs=2
group_reporting
fsync=64
[next]
stonewall
rw=write
time_based
runtime=1
`

// keysOf lists the keys of a JSON document; those of options, disks and what only we have are left out.
func keysOf(value any, at string, into map[string]bool) {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			if path := at + "/" + key; !regexp.MustCompile(`/(job options|global options|bragg)$`).MatchString(path) {
				keysOf(inner, path, into)
			}
		}
	case []any:
		for _, inner := range v {
			keysOf(inner, at+"[]", into)
		}
	default:
		into[at] = true
	}
}

// The JSON has exactly fio's keys, those under bragg aside, for the same jobs.
func TestJSONHasFioKeys(t *testing.T) {
	if testing.Short() {
		t.Skip("needs fio")
	}
	t.Parallel()
	ours, theirs := t.TempDir(), t.TempDir()
	for _, c := range []struct{ form, more string }{
		{"json", ""}, {"json+", ""}, {"json", "unified_rw_reporting=mixed\ndescription=a b\n"}, {"json", "unified_rw_reporting=both\n"},
		{"json", "lat_percentiles=1\nclat_percentiles=0\nslat_percentiles=1\npercentile_list=50:99\n"},
	} {
		form, jobs := c.form, strings.Replace(mixed, "[global]\n", "[global]\n"+c.more, 1)
		_, file := parse(t, ours, jobs)
		report, err := iojob.Run(t.Context(), file.Jobs(), iojob.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		l := labels(file)
		l.Bins = form == "json+"
		if err := report.WriteJSON(&b, l); err != nil {
			t.Fatal(err)
		}
		text, _ := parse(t, theirs, jobs)
		var got, want any
		if err := errors.Join(json.Unmarshal(b.Bytes(), &got), json.Unmarshal(fio(t, theirs, text, "--output-format="+form), &want)); err != nil {
			t.Fatal(err)
		}
		gotKeys, wantKeys := map[string]bool{}, map[string]bool{}
		keysOf(got, "", gotKeys)
		keysOf(want, "", wantKeys)
		bin := regexp.MustCompile(`/bins/\d+$|^/disk_util`)
		drop := func(m map[string]bool) {
			maps.DeleteFunc(m, func(k string, _ bool) bool { return bin.MatchString(k) })
		}
		drop(gotKeys)
		drop(wantKeys)
		for k := range wantKeys {
			if !gotKeys[k] {
				t.Errorf("%s %q: we lack %s", form, c.more, k)
			}
		}
		for k := range gotKeys {
			if !wantKeys[k] {
				t.Errorf("%s %q: fio has no %s", form, c.more, k)
			}
		}
	}
}

// Numbers of a row agree with each other: rate times runtime is the count, every operation has a latency, percentiles
// rise, classes add up.
func TestNumbersAgree(t *testing.T) {
	dir := t.TempDir()
	report := run(t, dir, mixed)
	if len(report.Rows) != 2 || report.Rows[0].Clones != 2 || report.Rows[0].Group != 0 || report.Rows[1].Group != 1 {
		t.Fatalf("rows %+v", report.Rows)
	}
	for _, row := range report.Rows {
		for d, dir := range row.Directions {
			if dir.Operations == 0 {
				continue
			}
			if dir.Service.Count() != dir.Operations || dir.Response.Count() != dir.Operations || dir.Bytes != 4096*dir.Operations {
				t.Errorf("%s %v: %d operations, %d bytes, %d latencies", row.Name, interval.Direction(d), dir.Operations, dir.Bytes, dir.Service.Count())
			}
			if n := dir.PerSecond(dir.Operations) * dir.Runtime.Seconds(); uint64(n+0.5) != dir.Operations {
				t.Errorf("%s: %v operations from the rate, %d counted", row.Name, n, dir.Operations)
			}
			if b := dir.Bandwidth; b.Samples == 0 || b.Min > b.Mean || b.Mean > b.Max {
				t.Errorf("%s: %+v", row.Name, b)
			}
		}
	}
	mix := report.Rows[0]
	if n := mix.Directions[0].Operations + mix.Directions[1].Operations; n != 2*8<<20/4096 {
		t.Errorf("two clones of 8 MiB did %d operations", n)
	}
	if got, want := mix.Account.Syncs.Count(), mix.Directions[1].Operations/64; got+2 < want || got > want {
		t.Errorf("%d syncs of %d writes", got, mix.Directions[1].Operations)
	}
	var depth uint64
	for _, n := range mix.Account.Depth {
		depth += n
	}
	if depth != mix.Directions[0].Operations+mix.Directions[1].Operations+mix.Account.Syncs.Count() {
		t.Errorf("%d operations by depth", depth)
	}
	if mix.Account.SystemNanos <= 0 || mix.Account.UserNanos+mix.Account.SystemNanos > 2*int64(mix.Runtime)+int64(time.Second) {
		t.Errorf("CPU %d and %d of %v", mix.Account.UserNanos, mix.Account.SystemNanos, mix.Runtime)
	}
}

// Files have the names and sizes that fio gives them.
func TestFilesAreLikeFios(t *testing.T) {
	for name, text := range map[string]string{
		"two folders, two files, two clones": "[global]\nsize=1m\nrw=write\nnumjobs=2\nnrfiles=2\ndirectory=@/x:@/y\n[a]\n[b]\noffset=1m\n",
		"colon list":                         "[a]\nfilename=@/one:@/two\nsize=2m\nrw=randwrite\nbs=8k\n",
		"increment":                          "[a]\nfilename=@/f\nsize=1m\noffset_increment=4m\nnumjobs=3\nrw=write\n",
		"filesize":                           "[a]\nfilename=@/f\nfilesize=3m\nsize=1m\nrw=write\n",
		"read of what is not there":          "[a]\ndirectory=@\nsize=1m\nrw=randread\n",
		"format":                             "[a]\ndirectory=@\nfilename_format=$jobname-$filenum-$jobnum\nsize=1m\nrw=write\nnumjobs=2\n",
		"unlink":                             "[a]\ndirectory=@\nsize=1m\nrw=write\nunlink=1\n[b]\ndirectory=@\nsize=1m\nrw=write\n",
	} {
		t.Run(name, func(t *testing.T) {
			ours, theirs := t.TempDir(), t.TempDir()
			for _, dir := range []string{ours, theirs} {
				for _, sub := range []string{"x", "y"} {
					if err := os.Mkdir(filepath.Join(dir, sub), 0o755); err != nil {
						t.Fatal(err)
					}
				}
			}
			run(t, ours, text)
			other, _ := parse(t, theirs, text)
			fio(t, theirs, other)
			if got, want := listing(t, ours), listing(t, theirs); !slices.Equal(got, want) {
				t.Errorf("files %q, fio has %q", got, want)
			}
		})
	}
}

func listing(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "job.fio" {
			return err
		}
		info, err := d.Info()
		out = append(out, fmt.Sprintf("%s %d", strings.TrimPrefix(path, dir), info.Size()))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// A file that is read holds data everywhere, also when it was there and too short; what was in it stays.
func TestFilesForReadingAreFilled(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f"), []byte(strings.Repeat("precious", 1024)), 0o644); err != nil {
		t.Fatal(err)
	}
	run(t, dir, "[a]\nfilename=@/f\nsize=1m\nrw=randread\n")
	text, err := os.ReadFile(filepath.Join(dir, "f"))
	if err != nil || len(text) != 1<<20 || !strings.HasPrefix(string(text), "preciousprecious") {
		t.Fatalf("%d bytes, %v", len(text), err)
	}
	for at := 8192; at < len(text); at += 512 {
		if bytes.Equal(text[at:at+512], make([]byte, 512)) {
			t.Fatalf("no content at %d", at)
		}
	}
}

// Reading what was never written measures no device; that is said.
func TestHolesAreWarnedOf(t *testing.T) {
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "sparse"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Truncate(8<<20), f.Close()); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		"[a]\nfilename=@/sparse\nrw=randread\nnumber_ios=10\n":  true,
		"[a]\nfilename=@/sparse\nrw=randwrite\nnumber_ios=10\n": false,
	} {
		_, file := parse(t, dir, text)
		var said []string
		_, err := iojob.Run(t.Context(), file.Jobs(), iojob.Options{Say: func(s string) { said = append(said, s) }})
		if err != nil || strings.Contains(strings.Join(said, "\n"), "were never written") != want {
			t.Errorf("%q said %q, %v", text, said, err)
		}
	}
}

// Terse lines have as many fields as fio's, in the same order.
func TestTerseHasFioFields(t *testing.T) {
	t.Parallel()
	ours, theirs := t.TempDir(), t.TempDir()
	report := run(t, ours, mixed)
	var b bytes.Buffer
	if err := report.WriteTerse(&b, fioreport.Terse{Release: fioreport.FormatVersion}); err != nil {
		t.Fatal(err)
	}
	text, _ := parse(t, theirs, mixed)
	got, want := strings.Split(b.String(), "\n"), strings.Split(string(fio(t, theirs, text, "--output-format=terse")), "\n")
	if len(got) != len(want) {
		t.Fatalf("%d lines, fio has %d", len(got), len(want))
	}
	digits := regexp.MustCompile(`[0-9.]+`)
	for i := range got {
		g, w := strings.Split(got[i], ";"), strings.Split(want[i], ";")
		if len(g) != len(w) {
			t.Errorf("line %d has %d fields, fio's %d", i, len(g), len(w))
			continue
		}
		for k := range g {
			if form, wanted := digits.ReplaceAllString(g[k], "0"), digits.ReplaceAllString(w[k], "0"); form != wanted {
				t.Errorf("line %d field %d: %q, fio has %q", i, k+1, g[k], w[k])
			}
		}
	}
}

// The text has the lines that people and scripts look for.
func TestTextHasFioLines(t *testing.T) {
	t.Parallel()
	ours, theirs := t.TempDir(), t.TempDir()
	var b bytes.Buffer
	if err := run(t, ours, mixed).WriteText(&b); err != nil {
		t.Fatal(err)
	}
	text, _ := parse(t, theirs, mixed)
	real := string(fio(t, theirs, text))
	for _, pattern := range []string{
		`(?m)^mix: \(groupid=0, jobs=2\): err= 0`, `(?m)^next: \(groupid=1, jobs=1\): err= 0`,
		`(?m)^  read: IOPS=[\d.]+k?, BW=[\d.]+[KMG]iB/s \([\d.]+[kMG]B/s\)\([\d.]+[KMG]iB/\d+msec\)`,
		`(?m)^ +clat \([num]sec\): min=\d+, max= *[\d.]+[kM]?, avg= *[\d.]+, stdev= *[\d.]+[kM]?$`,
		`(?m)^ +clat percentiles \([num]sec\):$`, `(?m)^ +\| +1\.00th=\[ *\d+\], +5\.00th=\[ *\d+\],`, `99\.99th=\[ *\d+\]$|99\.99th=\[ *\d+\]\n`,
		`(?m)^ +bw \(  KiB/s\): min= *\d+, max= *\d+, per=[\d.]+%, avg=[\d.]+, stdev= *[\d.]+, samples=\d+$`,
		`(?m)^ +iops        : min= *\d+, max= *\d+, avg=[\d.]+, stdev= *[\d.]+, samples=\d+$`,
		`(?m)^  cpu          : usr=[\d.]+%, sys=[\d.]+%, ctx=\d+, majf=\d+, minf=\d+$`,
		`(?m)^  IO depths    : 1=[\d.]+%, 2=[\d.]+%, 4=[\d.]+%, 8=[\d.]+%, 16=[\d.]+%, 32=[\d.]+%, >=64=[\d.]+%$`,
		`(?m)^     issued rwts: total=\d+,\d+,0,\d+ short=0,0,0,0 dropped=0,0,0,0$`,
		`(?m)^Run status group 0 \(all jobs\):$`, `(?m)^  WRITE: bw=[\d.]+[KMG]iB/s \([\d.]+[kMG]B/s\), .*io=[\d.]+[KMG]iB \([\d.]+[kMG]B\), run=\d+-\d+msec$`,
	} {
		re := regexp.MustCompile(pattern)
		if !re.MatchString(real) {
			t.Errorf("fio has no line like %s", pattern)
		}
		if !re.MatchString(b.String()) {
			t.Errorf("we have no line like %s\n%s", pattern, b.String())
		}
	}
}

// Stopping early reports what was done.
func TestStopReportsWhatWasDone(t *testing.T) {
	dir := t.TempDir()
	_, file := parse(t, dir, "[a]\nfilename=@/f\nsize=1m\nrw=randwrite\ntime_based\nruntime=1000\n[b]\nstonewall\nfilename=@/f\nsize=1m\nrw=write\n")
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	report, err := iojob.Run(ctx, file.Jobs(), iojob.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if report.Rows[0].Directions[1].Operations == 0 || report.Rows[1].Directions[1].Operations != 0 || !report.Done {
		t.Errorf("rows %+v", report.Rows)
	}
}

// An open loop counts what was due, and its latency counts from then.
func TestRateIsAnOpenLoop(t *testing.T) {
	report := run(t, t.TempDir(), "[a]\nfilename=@/f\nsize=4m\nrw=randread\nrate_iops=500\ntime_based\nruntime=1\n")
	row := report.Rows[0]
	if row.Due < 495 || row.Due > 505 || row.Directions[0].Operations+row.NotIssued != row.Due {
		t.Errorf("due %d, done %d, never issued %d", row.Due, row.Directions[0].Operations, row.NotIssued)
	}
}

// Jobs that cannot run are refused before anything is created, all of them at once.
func TestRefusals(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]string{
		"[a]\nfilename=@/none\nrw=read\n":                                                 "no size is given",
		"[a]\nfilename=@/none\nsize=50%\nrw=read\n":                                       "a percentage needs a file that exists",
		"[a]\nfilename=/dev/bragg-none\nsize=64k\nrw=write\n":                             `no such device: "/dev/bragg-none"`,
		"[b]\nfilename=@/../../../../../../../dev/bragg-none\nsize=64k\nrw=read\n":        "no such device",
		"[a]\nfilename=/dev/full\nsize=1m\nrw=read\n":                                     "neither a file nor a block device",
		"[ok]\nfilename=@/f\nsize=1m\nrw=read\n[b]\nrw=read\n":                            "no size is given",
		"[ok]\nfilename=@/f\nsize=1m\nrw=read\n[c]\nioengine=rbd\nsize=1m\ndirectory=@\n": "ioengine=rbd",
	} {
		_, file := parse(t, dir, text)
		_, err := iojob.Run(t.Context(), file.Jobs(), iojob.Options{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
		if left := listing(t, dir); len(left) > 0 {
			t.Errorf("%q left %q", text, left)
		}
	}
}

// A file system that is full while a file is laid out leaves no half file behind.
func TestFullDiskLeavesNoHalfFile(t *testing.T) {
	testreq.Root(t)
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=4m", "none", dir).CombinedOutput(); err != nil {
		t.Fatalf("mount: %v %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("umount", dir).Run() })
	_, file := parse(t, dir, "[a]\nfilename=@/f\nsize=16m\nrw=randread\n")
	if _, err := iojob.Run(t.Context(), file.Jobs(), iojob.Options{}); err == nil || !strings.Contains(err.Error(), "no space") {
		t.Errorf("error %v", err)
	}
	if left := listing(t, dir); len(left) > 0 {
		t.Errorf("left %q", left)
	}
}

// Block devices are written only with permission, which is checked before anything is touched.
func TestDeviceNeedsLeave(t *testing.T) {
	testreq.Root(t)
	testreq.Program(t, "losetup")
	dir := t.TempDir()
	image := filepath.Join(dir, "image")
	if err := os.WriteFile(image, bytes.Repeat([]byte("x"), 4<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("losetup", "--find", "--show", image).Output()
	if err != nil {
		t.Fatal(err)
	}
	device := strings.TrimSpace(string(out))
	t.Cleanup(func() { _ = exec.Command("losetup", "--detach", device).Run() })
	_, file := parse(t, dir, "[a]\nfilename="+device+"\nrw=write\nbs=64k\n")
	_, err = iojob.Run(t.Context(), file.Jobs(), iojob.Options{})
	var userErr *diag.Error
	if !errors.As(err, &userErr) || userErr.ExitCode() != diag.ExitRefused {
		t.Errorf("without leave: %v", err)
	}
	report, err := iojob.Run(t.Context(), file.Jobs(), iojob.Options{OpenDevice: func(path string) (*os.File, error) {
		if path != device {
			t.Errorf("asked for %s", path)
		}
		return os.OpenFile(path, os.O_RDWR|syscall.O_EXCL, 0)
	}})
	if err != nil || report.Rows[0].Directions[1].Bytes != 4<<20 {
		t.Errorf("with leave: %v, %+v", err, report)
	}
}
