package fiojob_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/fio/fiojob/syntax"
	"github.com/braggdev/bragg/internal/testreq"
)

// lines tells of each job its name, group, block size, size, depth and whether it waits.
func lines(f *fiojob.File) []string {
	var out []string
	for _, j := range f.Jobs() {
		text := fmt.Sprintf("%s g%d bs=%d size=%d depth=%d", j.Name, j.Group, j.BlockSize[0], j.Size.Bytes, j.IODepth)
		if j.Stonewall {
			text += " waits"
		}
		out = append(out, text)
	}
	return out
}

func TestSeveralInputs(t *testing.T) {
	file := "[global]\nbs=8k\nioengine=null\n[x1]\nsize=64k\n[x2]\nsize=128k\n"
	for _, c := range []struct {
		words    string
		files    int
		sections []string
		want     []string
	}{
		{"--bs=4k --iodepth=3", 1, nil, []string{"x1 g0 bs=8192 size=65536 depth=3", "x2 g0 bs=8192 size=131072 depth=3"}},
		{"--bs=4k --name=q --size 4k", 2, nil, []string{
			"q g0 bs=4096 size=4096 depth=1", "x1 g0 bs=8192 size=65536 depth=1", "x2 g0 bs=8192 size=131072 depth=1",
			"x1 g1 bs=8192 size=65536 depth=1 waits", "x2 g1 bs=8192 size=131072 depth=1",
		}},
		{"-name=a -size=16k --stonewall --name=b --bs 1k", 0, nil, []string{
			"a g0 bs=4096 size=16384 depth=1 waits", "b g0 bs=1024 size=0 depth=1",
		}},
		{"--name=global --size=16k --name=a --name=b --bs=1k", 0, nil, []string{
			"a g0 bs=4096 size=16384 depth=1", "b g0 bs=1024 size=16384 depth=1",
		}},
		{"", 2, []string{"x2"}, []string{"x2 g0 bs=8192 size=131072 depth=1", "x2 g1 bs=8192 size=131072 depth=1 waits"}},
		{"--name=z --size=16k", 1, []string{"x1"}, []string{"z g0 bs=4096 size=16384 depth=1", "x1 g0 bs=8192 size=65536 depth=1"}},
	} {
		inputs := []fiojob.Input{{Words: strings.Fields(c.words)}}
		for range c.files {
			inputs = append(inputs, fiojob.Input{Name: "c.fio", Text: file})
		}
		f, diags := fiojob.ParseAll(inputs, fiojob.Options{Sections: c.sections})
		if got := lines(f); diags.HasErrors() || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%q with %d files: %v\ngot  %q\nwant %q", c.words, c.files, diags, got, c.want)
		}
	}
}

// TestCommandLineProblems: the place is the number of the word, and nothing is expanded that the shell has seen.
func TestCommandLineProblems(t *testing.T) {
	for words, want := range map[string]string{
		"--name=a|--bs=4q":             "command line:2:6 bad-value",
		"--name=a|--bs|4q":             "command line:3:1 bad-value",
		"--name=a|--iodpth=4":          "command line:2:3 unknown-option",
		"--name=a|--size=${HOME}":      "command line:2:8 bad-value",
		"--name=a|--direct":            "command line:2:3 fio-refuses",
		"--name=a|--filename=x#y|-rw=": "command line:3:2 bad-value",
		"--bs=4k":                      "command line:1 no-job",
	} {
		_, diags := fiojob.ParseAll([]fiojob.Input{{Words: strings.Split(words, "|")}}, fiojob.Options{Env: plausible, Reading: syntax.Strict})
		if len(diags) != 1 || diags[0].Pos.String()+" "+diags[0].Code != want {
			t.Errorf("%s: %v, want %s", words, diags, want)
		}
	}
	_, diags := fiojob.ParseAll([]fiojob.Input{{Name: "a", Text: "[first]\n[second]\n"}}, fiojob.Options{Sections: []string{"secnd"}})
	if len(diags) != 1 || diags[0].Code != "no-section" || !strings.Contains(diags[0].Hint, "second") {
		t.Errorf("missing section: %v", diags)
	}
}

func TestArgumentsAreSplit(t *testing.T) {
	words, rest := fiojob.Arguments(strings.Fields("--output=x --bs=4k a.fio --name z --time_based b.fio --size 1m -rw=read --direct 1 --section s -- --bs=1"))
	if got, want := strings.Join(words, " "), "--bs=4k --name z --time_based --size 1m -rw=read --direct 1"; got != want {
		t.Errorf("words are %q, want %q", got, want)
	}
	if got, want := strings.Join(rest, " "), "--output=x a.fio b.fio --section s --bs=1"; got != want {
		t.Errorf("rest is %q, want %q", got, want)
	}
}

// TestCommandLineIsWhatFioMakesOfIt runs the same words and files with fio, on its engine that does nothing.
func TestCommandLineIsWhatFioMakesOfIt(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	dir := t.TempDir()
	one, two := "[global]\nsize=64k\n[x1]\n[x2]\nbs=1k\nname=other\n", "[y]\nsize=8k\nstonewall\n[z]\nsize=12k\nnew_group\n"
	for name, text := range map[string]string{"one": one, "two": two} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []string{
		"--ioengine=null one", "--ioengine=null --bs=2k one two one", "--ioengine=null --name=a --size=4k two one", "--ioengine=null two --name=a --size 4k",
		"-ioengine=null --name=global --size=4k --name=a --name=b --stonewall", "--ioengine=null --section=x2 one",
	} {
		var inputs []fiojob.Input
		var options fiojob.Options
		words, rest := fiojob.Arguments(strings.Fields(c))
		inputs = append(inputs, fiojob.Input{Words: words})
		for _, r := range rest {
			if section, found := strings.CutPrefix(r, "--section="); found {
				options.Sections = append(options.Sections, section)
				continue
			}
			inputs = append(inputs, fiojob.Input{Name: r, Text: map[string]string{"one": one, "two": two}[r]})
		}
		f, diags := fiojob.ParseAll(inputs, options)
		if err := diags.Err(); err != nil {
			t.Errorf("%s: %v", c, err)
		}
		var ours []string
		for _, j := range f.Jobs() {
			ours = append(ours, fmt.Sprintf("%s %d %d", j.Name, j.Group, j.Size.Bytes))
		}
		if theirs := fioRuns(t, dir, strings.Fields(c)); !slices.Equal(ours, theirs) {
			t.Errorf("%s: fio runs %q, we %q", c, theirs, ours)
		}
	}
}

// fioRuns tells of each job that fio runs its name, group and bytes.
func fioRuns(t *testing.T, dir string, arguments []string) []string {
	t.Helper()
	cmd := exec.Command(testreq.Program(t, "fio"), append([]string{"--output-format=json"}, arguments...)...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("fio %s: %v\n%s", arguments, err, out)
	}
	var said struct {
		Jobs []struct {
			Name  string `json:"jobname"`
			Group int    `json:"groupid"`
			Read  struct {
				Bytes int64 `json:"io_bytes"`
			} `json:"read"`
		} `json:"jobs"`
	}
	if err := json.Unmarshal(out, &said); err != nil {
		t.Fatalf("fio %s: %v\n%s", arguments, err, out)
	}
	var jobs []string
	for _, j := range said.Jobs {
		jobs = append(jobs, fmt.Sprintf("%s %d %d", j.Name, j.Group, j.Read.Bytes))
	}
	return jobs
}

// TestGeneratedNames compares the names of files with those that fio lays out.
func TestGeneratedNames(t *testing.T) {
	text := "[global]\nsize=4k\nrw=write\nnumjobs=3\n[a]\nname=other\n[b]\nnrfiles=2\ndirectory=d1:d2\n" +
		"[c]\nnumjobs=1\nnrfiles=2\nfilename_format=x/$jobname-$JobNum-$filenum.$jobname\n[d]\ndirectory=d\\:3\n"
	var ours []string
	for _, j := range parse(t, text).Jobs() {
		for clone := range j.NumJobs {
			ours = append(ours, j.CloneFiles(clone)...)
		}
	}
	want := strings.Fields("a.0.0 a.1.0 a.2.0 d1/b.0.0 d1/b.0.1 d2/b.1.0 d2/b.1.1 d1/b.2.0 d1/b.2.1 x/c-0-0.c x/c-0-1.c d:3/d.0.0 d:3/d.1.0 d:3/d.2.0")
	if !slices.Equal(ours, want) {
		t.Errorf("got  %q\nwant %q", ours, want)
	}
	if testing.Short() {
		t.Skip("fio lays out files too")
	}
	dir := t.TempDir()
	for _, folder := range []string{"d1", "d2", "d:3"} {
		if err := os.Mkdir(filepath.Join(dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(testreq.Program(t, "fio"), "--create_only=1", "-")
	cmd.Stdin, cmd.Dir = strings.NewReader(text), dir
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	for _, name := range want {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Errorf("fio made no %s", name)
		}
	}
}

func TestIncludeInSeveralFiles(t *testing.T) {
	tree := fstest.MapFS{
		"a.fio": {Data: []byte("include b.fio\n")}, "b.fio": {Data: []byte("bs=8k\ninclude a.fio\n")}, "c/d.fio": {Data: []byte("iodepth=4\n")},
	}
	_, diags := fiojob.Parse("main.fio", "[x]\ninclude a.fio\n", fiojob.Options{FS: tree})
	if len(diags) != 1 || diags[0].Code != "include-loop" || diags[0].Pos.String() != "b.fio:2:1" {
		t.Errorf("a loop of two: %v", diags)
	}
	f, diags := fiojob.ParseAll([]fiojob.Input{
		{Name: "one.fio", Text: "[global]\ninclude c/d.fio\n[x]\n"}, {Name: "c/two.fio", Text: "[y]\ninclude d.fio\ninclude d.fio\n"},
	}, fiojob.Options{FS: tree})
	if jobs := f.Jobs(); len(diags) > 0 || jobs[0].IODepth != 4 || jobs[1].IODepth != 4 {
		t.Errorf("%v, %+v", diags, jobs)
	}
}
