package fiojob_test

import (
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/fio/fiojob/syntax"
	"github.com/braggdev/bragg/internal/testreq"
)

// differences are the public files that the exact reading refuses although fio 3.33 takes them, or that fio refuses.
// There is none that both take and read otherwise.
var differences = map[string]string{
	"awslabs+mountpoint-s3/create_files_100.fio": "its engine creates files, which workloads must not",
	"axboe+fio/surface-scan.fio":                 "it fills a device, which workloads must not",
	"axboe+fio/example_latency_steadystate.fio":  "fio 3.33 does not have steadystate=lat and steadystate_check_interval yet",
	"dgist-datalab+Benchmark/mixed.fio":          "the file that it includes is missing; fio says so and goes on",
	"facebookincubator+FioSynth/70_30.fio":       "it has options for jobs of a command line and no job",
	"database_colocation_high/dss.fio":           "zonesize without zonemode: fio refuses that when it starts, and not yet when it parses",
	"database_colocation_high/dss_prefill.fio":   "zonesize without zonemode: fio refuses that when it starts, and not yet when it parses",
}

var variable = regexp.MustCompile(`\$\{([A-Za-z0-9_]+)\}`)

// publicFile is a job file with the name that differences knows it by, and what we read in it.
type publicFile struct {
	path, name, text string
	options          []string
	problem          string // the first error
}

func publicFiles(t *testing.T) (files []publicFile, environment []string) {
	t.Helper()
	memory := memoryMB(t)
	for _, path := range append(jobFiles(t, testreq.Corpus(t, "fio"), ""), jobFiles(t, testreq.Corpus(t, "xray"), ".fio")...) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range variable.FindAllStringSubmatch(string(text), -1) {
			value, _ := plausible(m[1])
			environment = append(environment, m[1]+"="+value)
		}
		f, diags := fiojob.Parse(filepath.Base(path), string(text), fiojob.Options{
			Reading: syntax.Exact, Env: plausible, CPUs: int64(runtime.NumCPU()), MemoryMB: memory, PageSize: int64(os.Getpagesize()),
			FS: os.DirFS(filepath.Dir(path)),
		})
		files = append(files, publicFile{
			path: path, name: filepath.Base(filepath.Dir(path)) + "/" + filepath.Base(path), text: string(text),
			options: slices.Sorted(slices.Values(read(f))), problem: firstError(diags),
		})
	}
	return files, environment
}

// TestPublicFilesReadAsFioReadsThem gives every public job file to fio and to the exact reading: both take it, and read
// every number of every option alike, or the file is on the list.
func TestPublicFilesReadAsFioReadsThem(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	files, environment := publicFiles(t)
	var arguments []string
	alone := func(f publicFile) bool { return f.problem != "" || differences[f.name] != "" }
	alike := slices.DeleteFunc(slices.Clone(files), alone)
	for _, f := range alike {
		arguments = append(arguments, f.path)
	}
	dir := t.TempDir()
	_, said, ok := fioParses(t, dir, environment, arguments...)
	parts := strings.Split(said, "Parsing ini file ")[1:]
	if !ok || len(parts) != len(alike) {
		t.Errorf("fio takes all files: %v; it shows %d of %d\n%s", ok, len(parts), len(alike), said[max(0, len(said)-500):])
	}
	count := 0
	for i, f := range alike[:min(len(parts), len(alike))] {
		text, _, _ := strings.Cut(parts[i], " filling default options") // then come the defaults for the next file
		theirs := slices.Sorted(slices.Values(parsedOptions(text)))
		count += len(theirs)
		if !slices.Equal(f.options, theirs) {
			t.Errorf("%s: fio reads %.600q; we read %.600q", f.name, onlyIn(theirs, f.options), onlyIn(f.options, theirs))
		}
	}
	t.Logf("%d of %d files alike, %d options", len(alike), len(files), count)
	for _, f := range files {
		if !alone(f) {
			continue
		}
		_, said, ok := fioParses(t, dir, environment, f.path)
		if differs := ok == (f.problem != ""); differs != (differences[f.name] != "") {
			t.Errorf("%s: differs from fio: %v, and on the list because of %q. Our problem: %q\n%s", f.name, differs,
				differences[f.name], f.problem, said[max(0, len(said)-500):])
		}
	}
}

func firstError(diags diag.List) string {
	for _, d := range diags {
		if d.Severity == diag.SeverityError {
			return d.Pos.String() + ": " + d.Message + " [" + d.Code + "]"
		}
	}
	return ""
}

// onlyIn returns what a has and b has not.
func onlyIn(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return slices.Contains(b, s) })
}

// memoryMB is what fio puts for $mb_memory.
func memoryMB(t *testing.T) int64 {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "job")
	if err := os.WriteFile(path, []byte("[a]\nioengine=null\nrandseed=$mb_memory\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	options, said, _ := fioParses(t, dir, nil, path)
	for _, o := range options {
		if number, found := strings.CutPrefix(o, "randseed "); found {
			var value int64
			for _, digit := range number {
				value = value*10 + int64(digit-'0')
			}
			return value
		}
	}
	t.Fatalf("fio does not say how much memory it sees:\n%s", said)
	return 0
}
