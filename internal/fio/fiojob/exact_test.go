package fiojob_test

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/fio/fiojob/syntax"
	"github.com/braggdev/bragg/internal/testreq"
)

// fioParses lets fio read job files, without running them, and returns every option with the numbers it found: "bs 4096
// 8192". ok says that it took them all.
func fioParses(t *testing.T, dir string, environment []string, arguments ...string) (options []string, said string, ok bool) {
	t.Helper()
	cmd := exec.Command(testreq.Program(t, "fio"), append([]string{"--debug=parse", "--parse-only"}, arguments...)...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), environment...)
	out, err := cmd.CombinedOutput()
	return parsedOptions(string(out)), string(out), err == nil
}

// parsedOptions picks the options and numbers out of fio's debug output.
func parsedOptions(said string) (options []string) {
	for line := range strings.Lines(said) {
		if _, rest, found := strings.Cut(line, " handle_option="); found {
			key, _, _ := strings.Cut(rest, ",")
			options = append(options, syntax.Canonical(key))
		} else if _, number, found := strings.Cut(line, "ret=0, out="); found && len(options) > 0 {
			options[len(options)-1] += " " + strings.TrimSpace(number)
		}
	}
	return options
}

// read returns the options of a file as fioParses does.
func read(f *fiojob.File) []string {
	var out []string
	for _, s := range f.Sections {
		for _, o := range s.Options {
			text := o.Key
			for _, n := range o.Numbers {
				value := uint64(n.Value)
				if n.Percent {
					value = uint64(-1 - n.Value) // fio keeps percentages as negative numbers
				}
				text += " " + strconv.FormatUint(value, 10)
			}
			if o.Bare && len(o.Numbers) == 0 && o.Exact == "1" {
				text += " 1"
			}
			out = append(out, text)
		}
	}
	return out
}

var doubtful = []string{
	"4k", " 4k", "4 k", "4K", "4kb", "4kib", "4KiB", "4ki", "4mibx", "4kbb", "4kx", "4q", "4b", "1.5g", "1.5", "0x10", " 0x10",
	"0x10k", "0xfg", "0x", "010", "+4k", "1e3", "4k8k", "4k.5", "4_k", "8,16", "8:16", "8-16", "8,16,32", "8,", ",8", ",,8", "8,,16",
	"8k,16k,32k,64k", "8, 16k", "8 ,16k", "10sec", "10s", "10S", "10 s", " 10s", "10ms", " 10ms", "10msec", "10us", "1min", "1m",
	" 1m", "1h", "1d", "1m30s", "10ss", "10s5", "10/s", "10usec", "10 usec", "0x10s", "1s-5s", "1s:5s", "1s,5s", "5m,", "4k:0x10",
	"x", "k", "", ".5k", "+", "1", "7", "99999999999999999999",
}

// TestExactNumbersAreWhatFioReads gives fio and the exact reading the same doubtful texts, for one option of each kind:
// those that we take in one file, the others one by one.
func TestExactNumbersAreWhatFioReads(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "job")
	give := func(text string) (theirs []string, said string, ok bool) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return fioParses(t, dir, nil, path)
	}
	taken := ""
	for _, key := range []string{"bs", "size", "runtime", "thinktime", "fsync", "rate", "log_avg_msec", "max_latency", "filesize"} {
		for _, value := range doubtful {
			text := fmt.Sprintf("[a]\nioengine=null\n%s=%s\n", key, value)
			_, diags := fiojob.Parse("t", text, fiojob.Options{Reading: syntax.Exact, Host: true})
			switch {
			case !diags.HasErrors():
				taken += text
			case strings.HasPrefix(value, ","):
				// fio keeps what was before and says nothing where the first number of a list is missing.
			case key == "bs" || key == "runtime" || value == "":
				if _, said, ok := give(text); ok {
					t.Errorf("%s=%s: we refuse it, fio does not: %v\n%s", key, value, diags, said)
				}
			}
		}
	}
	theirs, said, ok := give(taken)
	f, _ := fiojob.Parse("t", taken, fiojob.Options{Reading: syntax.Exact, Host: true})
	ours := read(f)
	if !ok || len(theirs) != len(ours) || len(ours) < 800 {
		t.Fatalf("fio takes the file: %v; it reads %d options, we %d\n%s", ok, len(theirs), len(ours), said[max(0, len(said)-600):])
	}
	for i, s := range f.Sections {
		if at := 2*i + 1; theirs[at] != ours[at] {
			t.Errorf("%s=%s: fio reads %q, we %q", s.Options[1].Key, s.Options[1].Value, theirs[at], ours[at])
		}
	}
}

// TestKindsAreThoseOfFio gives every option with numbers the same texts: suffixes mean bytes to all, or times to all.
func TestKindsAreThoseOfFio(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "job")
	for engine, names := range fioOptions(t) {
		for len(names) > 0 {
			text := everyNumber(engine, names)
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			theirs, _, ok := fioParses(t, dir, nil, path)
			f, _ := fiojob.Parse("t", text, fiojob.Options{Reading: syntax.Exact, Host: true})
			ours, done := read(f), len(names)
			for i, name := range names {
				theirs, ours := about(slices.Clone(theirs), name), about(slices.Clone(ours), name)
				// fio reads the defaults of an engine's options too, once for every section.
				if name != "ioengine" && len(theirs) > 0 && !strings.Contains(strings.Join(theirs, "|"), strings.Join(ours, "|")) {
					t.Errorf("%s: fio reads %q, we %q", name, theirs, ours)
				}
				if len(theirs) > 0 && !ok && name != "ioengine" {
					done = i + 1 // fio stopped behind this one: go on with the next
				}
			}
			names = names[done:]
		}
	}
}

// everyNumber writes a section for each option with numbers, with texts that show what it takes.
func everyNumber(engine string, names []string) string {
	var text strings.Builder
	for _, name := range names {
		lines := []string{"=1", "= 1", "=0"}
		switch info, _ := fiojob.Describe(name); {
		case info.Class == syntax.Refused:
			continue
		case info.Value == "bytes", info.Value == "number", info.Value == "bytes or percentage", info.Value == "time":
			lines = []string{"=1", "= 1", "=1us", "= 1k", "=1s"}
		case info.Value != "0 or 1" && info.Value != "nothing, 0 or 1":
			continue
		}
		fmt.Fprintf(&text, "[%s]\nioengine=%s\n", name, cmp.Or(engine, "null"))
		for _, line := range lines {
			text.WriteString(name + line + "\n")
		}
	}
	return text.String()
}

// about picks the entries of one option.
func about(options []string, name string) []string {
	return slices.DeleteFunc(options, func(o string) bool {
		key, _, _ := strings.Cut(o, " ")
		return key != syntax.Canonical(name)
	})
}

// exactly reads a job file of one job as fio does.
func exactly(t *testing.T, text string) fiojob.Job {
	t.Helper()
	f, diags := fiojob.Parse("t", "[a]\n"+text+"\n", fiojob.Options{Reading: syntax.Exact, Host: true})
	if err := diags.Err(); err != nil || len(f.Jobs()) != 1 {
		t.Fatalf("%q: %v", text, err)
	}
	return f.Jobs()[0]
}

// TestExactReading fixes what the famous misreadings come to.
func TestExactReading(t *testing.T) {
	for text, got := range map[string]func(fiojob.Job) bool{
		"bs = 4k":                      func(j fiojob.Job) bool { return j.BlockSize == [3]int64{4, 4, 4} },
		"bs=4k:8k":                     func(j fiojob.Job) bool { return j.BlockSize == [3]int64{4096, 8192, 8192} },
		"size=1.5g":                    func(j fiojob.Job) bool { return j.Size.Bytes == 1 },
		"size=1m,2m":                   func(j fiojob.Job) bool { return j.Size.Bytes == 2<<20 },
		"size= 50%":                    func(j fiojob.Job) bool { return j.Size.Bytes == 50 && j.Size.Percent == 0 },
		"size=50%":                     func(j fiojob.Job) bool { return j.Size.Percent == 50 },
		"runtime=10sec":                func(j fiojob.Job) bool { return j.Runtime == 10*time.Microsecond },
		"runtime=1min":                 func(j fiojob.Job) bool { return j.Runtime == time.Microsecond },
		"runtime= 10m":                 func(j fiojob.Job) bool { return j.Runtime == 10*time.Second },
		"rwmixread=70:30":              func(j fiojob.Job) bool { return j.RWMixRead == 30 },
		"rwmixwrite=70:30":             func(j fiojob.Job) bool { return j.RWMixRead == 70 },
		"numjobs=2-4":                  func(j fiojob.Job) bool { return j.NumJobs == 2 },
		"rate=64m, 32m":                func(j fiojob.Job) bool { return j.Rate == [3]int64{64 << 20, 32, 32} },
		"rate=64m,":                    func(j fiojob.Job) bool { return j.Rate == [3]int64{64 << 20, 0, 0} },
		"filename= x":                  func(j fiojob.Job) bool { return j.Filenames[0] == " x" },
		"filename=:x:y::z":             func(j fiojob.Job) bool { return slices.Equal(j.Filenames, []string{"x", "y"}) },
		"name= x":                      func(j fiojob.Job) bool { return j.Name == " x" },
		"rw=randread:8k":               func(j fiojob.Job) bool { return j.Sequence == 8 },
		"rw=read:8kib":                 func(j fiojob.Job) bool { return j.Sequence == 8000 },
		"direct=01":                    func(j fiojob.Job) bool { return j.Direct },
		"time_based=2":                 func(j fiojob.Job) bool { return j.TimeBased },
		"loops=0":                      func(j fiojob.Job) bool { return j.Loops == 1 },
		"continue_on_error=read,all":   func(j fiojob.Job) bool { return j.ContinueOnError == "read" },
		"bsrange= 4k-8k":               func(j fiojob.Job) bool { return j.BlockRange[0] == [2]int64{4, 8192} },
		"bssplit=4k/50: 8k/50":         func(j fiojob.Job) bool { return j.BlockSplit[0][1].Bytes == 8 },
		"bssplit= 4k/50:8k/50":         func(j fiojob.Job) bool { return j.BlockSplit[0][0].Bytes == 4096 },
		"bssplit=8k/60:4k/60":          func(j fiojob.Job) bool { return j.BlockSplit[0][1].Percent == 40 },
		"bssplit=8k/30:4k/70:16k/20":   func(j fiojob.Job) bool { return j.BlockSplit[0][1].Percent == 50 },
		"bssplit=8k/x:4k/20":           func(j fiojob.Job) bool { return j.BlockSplit[0][0].Percent == 80 },
		"bssplit=8k/30.5:4k/69.5":      func(j fiojob.Job) bool { return j.BlockSplit[0][1].Percent == 70 },
		"zonesize=1m\nzonemode=zbd":    func(j fiojob.Job) bool { return j.ZoneSize == 1<<20 },
		"kb_base=1000\nsize=1kib":      func(j fiojob.Job) bool { return j.Size.Bytes == 1024 },
		"thinktime=1.5ms":              func(j fiojob.Job) bool { return j.ThinkTime == time.Microsecond },
		"startdelay=5":                 func(j fiojob.Job) bool { return j.StartDelay == 5*time.Second },
		"filename=x\nfilename=y\nbs=8": func(j fiojob.Job) bool { return len(j.Filenames) == 2 },
	} {
		if j := exactly(t, text); !got(j) {
			t.Errorf("%q is read as %+v", text, j)
		}
	}
	f, _ := fiojob.Parse("t", "[global]\nfilename=x\n[a]\nfilename=y\n", fiojob.Options{Reading: syntax.Exact, Host: true})
	if got := f.Jobs()[0].Filenames; !slices.Equal(got, []string{"x", "y"}) {
		t.Errorf("filename of [global] and of the job: %q", got)
	}
	for _, text := range []string{
		"zonesize=1m", "direct=true", "direct", "direct=2", "time_based=yes", "rw= read", "rw=Read", "rw=rea", "size=", "bs=k", "rwmixread=70%",
		"percentage_random=101", "zonemode= strided",
	} {
		_, diags := fiojob.Parse("t", "[a]\n"+text+"\n", fiojob.Options{Reading: syntax.Exact, Host: true})
		if !diags.HasErrors() {
			t.Errorf("%q is accepted", text)
		}
	}
}

// TestStrictRefusesDoubt: what the default reading warns about is an error, with a place and a suggestion, and what it
// reads in silence is none.
func TestStrictRefusesDoubt(t *testing.T) {
	text, err := os.ReadFile("testdata/meant.fio")
	if err != nil {
		t.Fatal(err)
	}
	_, meant := fiojob.Parse("meant.fio", string(text), fiojob.Options{})
	_, strict := fiojob.Parse("meant.fio", string(text), fiojob.Options{Reading: syntax.Strict})
	if len(meant) != len(strict) {
		t.Errorf("%d warnings, %d errors", len(meant), len(strict))
	}
	for _, d := range strict {
		if d.Severity != diag.SeverityError || d.Pos.Line == 0 || d.Hint == "" {
			t.Errorf("%+v", d)
		}
	}
	_, exact := fiojob.Parse("meant.fio", string(text), fiojob.Options{Reading: syntax.Exact, Host: true})
	var out bytes.Buffer
	for _, list := range []diag.List{strict, exact} {
		if err := diag.Render(&out, list); err != nil {
			t.Fatal(err)
		}
		out.WriteString("---\n")
	}
	golden(t, "strict-and-exact.golden", out.Bytes())
	family, err := os.ReadFile("testdata/xray-family.fio")
	if err != nil {
		t.Fatal(err)
	}
	_, diags := fiojob.Parse("a", strings.ReplaceAll(string(family), "zonesize=", "zonemode=strided\nzonesize="), fiojob.Options{Reading: syntax.Strict})
	for _, d := range diags {
		t.Errorf("%s: %s", d.Pos, d.Message)
	}
}
