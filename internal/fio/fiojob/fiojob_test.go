package fiojob_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/fio/fiojob/region"
	"github.com/braggdev/bragg/internal/fio/fiojob/syntax"
)

var update = flag.Bool("update", false, "rewrite golden files")

// golden compares got with testdata/name, or rewrites that file.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs (rewrite with -update):\n%s", path, got)
	}
}

// parse reads a job file that must have no error.
func parse(t *testing.T, text string) *fiojob.File {
	t.Helper()
	f, diags := fiojob.Parse("test.fio", text, fiojob.Options{})
	if err := diags.Err(); err != nil {
		t.Fatalf("parse %q: %v", text, err)
	}
	return f
}

func only(t *testing.T, text string) fiojob.Job {
	t.Helper()
	jobs := parse(t, text).Jobs()
	if len(jobs) != 1 {
		t.Fatalf("parse %q: %d jobs, want 1", text, len(jobs))
	}
	return jobs[0]
}

// TestDiagnostics compares the diagnostics of every testdata/*.fio with its golden file; all problems of a file are reported
// at once.
func TestDiagnostics(t *testing.T) {
	files, err := filepath.Glob("testdata/*.fio")
	if err != nil || len(files) == 0 {
		t.Fatalf("find testdata: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			f, diags := fiojob.Parse(filepath.Base(file), string(text), fiojob.Options{})
			var out bytes.Buffer
			if err := diag.Render(&out, append(diags, f.Unsupported()...)); err != nil {
				t.Fatal(err)
			}
			out.WriteString("--- as fio reads it\n" + f.Print(nil))
			golden(t, strings.TrimSuffix(filepath.Base(file), ".fio")+".golden", out.Bytes())
		})
	}
}

// TestTypedJob fixes every field of a job that uses all options of X-Ray's family, by its JSON.
func TestTypedJob(t *testing.T) {
	text, err := os.ReadFile("testdata/xray-family.fio")
	if err != nil {
		t.Fatal(err)
	}
	jobs := parse(t, string(text)).Jobs()
	for i := range jobs {
		jobs[i].Options = nil
	}
	out, err := json.MarshalIndent(jobs, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "xray-family.json", append(out, '\n'))
}

func TestDefaults(t *testing.T) {
	j := only(t, "[a]\n")
	if j.ReadWrite != "read" || j.BlockSize != [3]int64{4096, 4096, 4096} || j.IODepth != 1 || j.NumJobs != 1 ||
		j.IOEngine != "psync" || j.PercentRandom != [3]int{100, 100, 100} || j.RWMixRead != 50 || j.Direct ||
		j.IODepthBatchCompleteMax != 1 || j.IODepthLow != 1 || j.OpenFiles != 1 || j.Distribution.Kind != "random" {
		t.Errorf("defaults: %+v", j)
	}
}

func TestGlobalsAccumulateAndAffectLaterJobsOnly(t *testing.T) {
	jobs := parse(t, "[global]\nbs=8k\niodepth=4\n[a]\n[globalmore]\niodepth=8\nrw=write\n[b]\nbs=16k\n[c]\n").Jobs()
	got := [][3]any{}
	for _, j := range jobs {
		got = append(got, [3]any{j.BlockSize[fiojob.Write], j.IODepth, j.ReadWrite})
	}
	want := [][3]any{{int64(8192), 4, "read"}, {int64(16384), 8, "write"}, {int64(8192), 8, "write"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestTriples(t *testing.T) {
	for _, c := range []struct {
		text string
		want [3]int64
	}{
		{"bs=8k", [3]int64{8192, 8192, 8192}},
		{"bs=8k,16k", [3]int64{8192, 16384, 16384}},
		{"bs=8k,16k,32k", [3]int64{8192, 16384, 32768}},
		{"bs=,16k", [3]int64{4096, 16384, 16384}},
		{"bs=8k,", [3]int64{8192, 4096, 4096}},
		{"bs=8k,,32k", [3]int64{8192, 4096, 32768}},
	} {
		if got := only(t, "[a]\n"+c.text+"\n").BlockSize; got != c.want {
			t.Errorf("%s: %v, want %v", c.text, got, c.want)
		}
	}
}

func TestNumbersAreReadAsMeant(t *testing.T) {
	for _, c := range []struct {
		text string
		want int64
		warn bool
	}{
		{"4k", 4 << 10, false}, {"4K", 4 << 10, false}, {"4kb", 4 << 10, false}, {"4ki", 4 << 10, false},
		{"2m", 2 << 20, false}, {"1g", 1 << 30, false}, {"1t", 1 << 40, false}, {"0x1000", 4096, false},
		{"1.5g", 3 << 29, true}, {"4KiB", 4 << 10, true}, {" 4k", 4 << 10, true}, {"4 k", 4 << 10, true},
		{" 4096", 4096, false},
	} {
		f, diags := fiojob.Parse("t", "[a]\nsize="+c.text+"\n", fiojob.Options{})
		if got := f.Jobs()[0].Size.Bytes; got != c.want || diags.HasErrors() || len(diags) > 0 != c.warn {
			t.Errorf("size=%s: %d with %v, want %d, warning %v", c.text, got, diags, c.want, c.warn)
		}
	}
	if j := only(t, "[a]\nkb_base=1000\nsize=4k\nio_size=4kib\n"); j.Size.Bytes != 4000 || j.IOSize.Bytes != 4096 {
		t.Errorf("kb_base=1000: size %d, io_size %d", j.Size.Bytes, j.IOSize.Bytes)
	}
}

func TestTimesAreReadAsMeant(t *testing.T) {
	for _, c := range []struct {
		text string
		want time.Duration
		warn bool
	}{
		{"runtime=30", 30 * time.Second, false}, {"runtime=5m", 5 * time.Minute, false}, {"runtime=1h", time.Hour, false},
		{"runtime=10sec", 10 * time.Second, true}, {"runtime=1min", time.Minute, true},
		{"runtime=1.5h", 90 * time.Minute, true}, {"runtime=100ms", 100 * time.Millisecond, false},
		{"timeout=7", 7 * time.Second, false},
	} {
		f, diags := fiojob.Parse("t", "[a]\n"+c.text+"\n", fiojob.Options{})
		if got := f.Jobs()[0].Runtime; got != c.want || diags.HasErrors() || len(diags) > 0 != c.warn {
			t.Errorf("%s: %v with %v, want %v, warning %v", c.text, got, diags, c.want, c.warn)
		}
	}
	if got := only(t, "[a]\nthinktime=500\n").ThinkTime; got != 500*time.Microsecond {
		t.Errorf("thinktime=500: %v", got)
	}
}

func TestSplits(t *testing.T) {
	for _, c := range []struct {
		text string
		want []syntax.Split
	}{
		{"8k/90:32k/10", []syntax.Split{{Bytes: 8192, Percent: 90}, {Bytes: 32768, Percent: 10}}},
		{"8k/0:4k/30", []syntax.Split{{Bytes: 8192, Percent: 70}, {Bytes: 4096, Percent: 30}}},
		{"8k:4k/30:2k/", []syntax.Split{{Bytes: 8192, Percent: 35}, {Bytes: 4096, Percent: 30}, {Bytes: 2048, Percent: 35}}},
		{"8k/30:4k/30", []syntax.Split{{Bytes: 8192, Percent: 30}, {Bytes: 4096, Percent: 70}}},
	} {
		if got := only(t, "[a]\nbssplit="+c.text+"\n").BlockSplit[fiojob.Trim]; !reflect.DeepEqual(got, c.want) {
			t.Errorf("bssplit=%s: %v, want %v", c.text, got, c.want)
		}
	}
}

func TestFilenames(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{"[a]\nfilename=/dev/sdb\n", []string{"/dev/sdb"}},
		{"[a]\nfilename=x:y::z\n", []string{"x", "y", "z"}},
		{"[a]\nfilename=:x\\:y:z\n", []string{"x:y", "z"}},
		{"[a]\nfilename=x\nfilename=y\n", []string{"x", "y"}},
		{"[global]\nfilename=x\n[a]\nfilename=y\n", []string{"y"}},
		{"[a]\ndirectory=/mnt\nfilename=x:y\n", []string{"/mnt/x", "/mnt/y"}},
		{"[/dev/sdc]\n", []string{"/dev/sdc"}},
		{"[a]\nfilename= x y\n", []string{"x y"}},
	} {
		j := only(t, c.text)
		if got := j.Files(); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
}

func TestNameAndGroups(t *testing.T) {
	jobs := parse(t, "[global]\nname=ignored\n[a]\nstonewall\n[b]\nname=other\n[c]\nwait_for_previous=1\n[d]\nnew_group\n[e]\n").Jobs()
	var got []string
	for _, j := range jobs {
		got = append(got, j.Section+" "+j.Name+" "+string(rune('0'+j.Group)))
	}
	want := []string{"a a 0", "b other 0", "c c 1", "d d 2", "e e 2"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestEnvironmentAndKeywords(t *testing.T) {
	options := fiojob.Options{
		Env:      func(name string) (string, bool) { v, ok := map[string]string{"S": "2", "U": "m"}[name]; return v, ok },
		PageSize: 4096, CPUs: 3, MemoryMB: 100,
	}
	f, diags := fiojob.Parse("t", "[a]\nsize=${S}${U}\nbs=$pagesize\nnumjobs=$ncpus*2-1\nio_size=10*10*1000*$mb_memory/2\n", options)
	if err := diags.Err(); err != nil {
		t.Fatal(err)
	}
	j := f.Jobs()[0]
	if j.Size.Bytes != 2<<20 || j.BlockSize[0] != 4096 || j.NumJobs != 5 || j.IOSize.Bytes != 5_000_000 {
		t.Errorf("size %d, bs %d, numjobs %d, io_size %d", j.Size.Bytes, j.BlockSize[0], j.NumJobs, j.IOSize.Bytes)
	}
	for _, text := range []string{"size=${NONE}", "numjobs=$ncpus/0", "numjobs=$ncpus+", "numjobs=($ncpus"} {
		if _, diags := fiojob.Parse("t", "[a]\n"+text+"\n", options); !diags.HasErrors() {
			t.Errorf("%s: no error", text)
		}
	}
}

func TestInclude(t *testing.T) {
	tree := fstest.MapFS{
		"jobs/common.fio":  {Data: []byte("iodepth=8\ninclude deep.fio\n")},
		"jobs/deep.fio":    {Data: []byte("bs=64k\n")},
		"jobs/loop.fio":    {Data: []byte("include loop.fio\n")},
		"jobs/section.fio": {Data: []byte("[b]\n")},
	}
	f, diags := fiojob.Parse("jobs/a.fio", "[a]\ninclude common.fio\n", fiojob.Options{FS: tree})
	if err := diags.Err(); err != nil {
		t.Fatal(err)
	}
	if j := f.Jobs()[0]; j.IODepth != 8 || j.BlockSize[0] != 65536 {
		t.Errorf("iodepth %d, bs %d", j.IODepth, j.BlockSize[0])
	}
	for name, code := range map[string]string{
		"loop.fio": "include-loop", "section.fio": "section-in-include", "none.fio": "include-missing",
		"../../etc/passwd": "include-missing", "/etc/passwd": "include-missing",
	} {
		_, diags := fiojob.Parse("jobs/a.fio", "[a]\ninclude "+name+"\n", fiojob.Options{FS: tree})
		if len(diags) != 1 || diags[0].Code != code {
			t.Errorf("include %s: %v, want %s", name, diags, code)
		}
	}
}

func TestClasses(t *testing.T) {
	for key, want := range map[string]syntax.Class{
		"bs": syntax.Native, "blocksize": syntax.Native, "thread": syntax.Ignored, "steadystate": syntax.Delegate,
		"exec_prerun": syntax.Refused, "nonsense": syntax.Unknown,
	} {
		if got, _ := fiojob.ClassOf(key); got != want {
			t.Errorf("%s: %s, want %s", key, got, want)
		}
	}
	for _, name := range fiojob.OptionNames() {
		if class, why := fiojob.ClassOf(name); class == syntax.Unknown || class != syntax.Native && why == "" {
			t.Errorf("%s is %s because %q", name, class, why)
		}
	}
}

func TestUndeclared(t *testing.T) {
	f := parse(t, "[a]\nfilename=/dev/sdb:/etc/passwd\n[b]\n[c]\nfilename=/dev/sdb\n")
	var got []string
	for _, d := range f.Undeclared([]string{"/dev/sdb"}) {
		got = append(got, d.Pos.String()+" "+d.Code)
	}
	if want := []string{"test.fio:2:10 unknown-device", "test.fio:3:1 no-filename"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestRuntimeIsBoundedNotReplaced(t *testing.T) {
	f := parse(t, "[a]\n[b]\nruntime=10\n").WithRuntime(30 * time.Second)
	if jobs := f.Jobs(); jobs[0].Runtime != 30*time.Second || jobs[1].Runtime != 10*time.Second {
		t.Errorf("runtimes %v and %v", jobs[0].Runtime, jobs[1].Runtime)
	}
	if f := f.WithRuntime(0); f.Jobs()[0].Runtime != 30*time.Second {
		t.Error("runtime 0 changed a job")
	}
}

func TestContinueOnErrors(t *testing.T) {
	jobs := parse(t, "[a]\n[b]\ncontinue_on_error=none\n").ContinueOnErrors().Jobs()
	if jobs[0].ContinueOnError != "all" || jobs[1].ContinueOnError != "none" {
		t.Errorf("%s and %s", jobs[0].ContinueOnError, jobs[1].ContinueOnError)
	}
}

func TestCommandLineIsQuoted(t *testing.T) {
	got := parse(t, "[it's a job]\nfilename=/dev/sd b\nbs=8k\n").CommandLine()
	if want := `fio '--name=it'\''s a job' --bs=8k '--filename=/dev/sd b'`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestHostileFiles checks that size, clones and problems are bounded, whatever the file holds.
func TestHostileFiles(t *testing.T) {
	everything := "[global]\n"
	for _, name := range fiojob.OptionNames() {
		everything += name + "=1\n"
	}
	for name, text := range map[string]string{
		"too large":          strings.Repeat("x", 2<<20),
		"unknown options":    "[a]\n" + strings.Repeat("q\n", 400_000),
		"same option":        "[a]\n" + strings.Repeat("bs=4k\n", 150_000),
		"sections":           everything + strings.Repeat("[a]\n", 200_000),
		"clones":             strings.Repeat("[a]\nnumjobs=4096\n", 1000),
		"buffers":            "[a]\nbs=1g\niodepth=65536\nnumjobs=4096\n",
		"files":              "[a]\nfilename=" + strings.Repeat("a:", 400_000) + "\n",
		"one line":           "[" + strings.Repeat("a", 900_000) + "]\n",
		"parentheses":        "[a]\nsize=$ncpus+" + strings.Repeat("(", 500_000) + "\n",
		"variables":          "[a]\nfilename=" + strings.Repeat("${A}", 200_000) + "\n",
		"binary":             strings.Repeat("\x00\xff[\x01]=\n", 100_000),
		"percentages":        "[a]\nbssplit=" + strings.Repeat("1:", 400_000) + "\n",
		"option before jobs": strings.Repeat("bs=4k\n", 100_000),
	} {
		t.Run(name, func(t *testing.T) {
			_, diags := fiojob.Parse("t", text, fiojob.Options{CPUs: 2, Env: func(string) (string, bool) {
				return strings.Repeat("x", 100_000), true
			}})
			if name != "same option" && !diags.HasErrors() {
				t.Error("no error")
			}
			if len(diags) > 200 {
				t.Errorf("%d diagnostics", len(diags))
			}
		})
	}
}

func TestScaleKeepsTheNumberOfZones(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"bs=1M\nfilesize=512G\nsize=32G\nzonesize=2G\nzoneskip=30G\n", "size=64m filesize=144m zonesize=1m zoneskip=8m"},
		{"bs=64k\nsize=64g\nzonesize=1g\nzoneskip=3g\n", "size=16m zonesize=256k zoneskip=768k"},
		{"bs=1m\nsize=64g\nzonesize=1g\nzoneskip=3g\n", "size=64m zonesize=1m zoneskip=1m"},
		{"bs=64k\nsize=65g\nzonesize=1g\nzoneskip=3g\n", "size=16640k zonesize=256k zoneskip=768k"},
	} {
		j := region.Scale(parse(t, "[a]\n"+c.text), 1.0/4096, 64).Jobs()[0]
		var got []string
		for _, o := range j.Printed(nil) {
			if !strings.HasPrefix(o, "bs=") && o != "zonemode=strided" {
				got = append(got, o)
			}
		}
		want := strings.Fields(c.want)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", c.text, got, want)
		}
	}
}

// TestLogsAreForThisMachine: jobs that replay or write logs are refused unless they are the user's own, on this machine.
func TestLogsAreForThisMachine(t *testing.T) {
	const text = "[a]\nread_iolog=x:y\\:z\nwrite_iolog=w\nreplay_no_stall=1\nreplay_time_scale=50\nreplay_redirect=/r\nreplay_scale=2\n" +
		"replay_align=4k\nreplay_skip=write,sync\nread_iolog_chunked=1\n"
	_, diags := fiojob.Parse("t", text, fiojob.Options{})
	if got := strings.Count(fmt.Sprint(diags), "refused-option"); got != 9 {
		t.Errorf("%d of 9 options are refused: %v", got, diags)
	}
	f, diags := fiojob.Parse("t", text, fiojob.Options{Host: true})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	j := f.Jobs()[0]
	want := fiojob.Replay{
		Logs: []string{"x", "y:z"}, NoStall: true, Redirect: "/r", SpeedPercent: 50, Scale: 2, Align: 4096, Skip: []string{"write", "sync"},
	}
	if !reflect.DeepEqual(j.Replay, want) || j.WriteIOLog != "w" || j.Replay.Log(0)+j.Replay.Log(1)+j.Replay.Log(2) != "xy:zx" {
		t.Errorf("%+v %q", j.Replay, j.WriteIOLog)
	}
	for _, bad := range []string{
		"read_iolog=", "read_iolog=-", "replay_skip=wrte", "replay_align=3000", "replay_time_scale=0", "replay_scale=0", "merge_blktrace_file=x",
	} {
		f, diags := fiojob.Parse("t", "[a]\n"+bad+"\n", fiojob.Options{Host: true})
		if !append(diags, f.Unsupported()...).HasErrors() {
			t.Errorf("%s is taken", bad)
		}
	}
}
