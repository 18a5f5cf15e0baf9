package fiojob_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/testreq"
)

func jobFiles(t *testing.T, root, suffix string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(path, suffix) && filepath.Ext(path) != ".md" {
			files = append(files, path)
		}
		return err
	})
	if err != nil || len(files) == 0 {
		t.Fatalf("find job files in %s: %d found, %v", root, len(files), err)
	}
	return files
}

// plausible gives the variables of public job files values.
func plausible(name string) (string, bool) {
	values := map[string]string{
		"IOENGINE": "libaio", "RW": "randread", "RWMIXREAD": "70", "BLKSIZE": "4k", "BLOCKSIZE": "4k", "BS": "4k", "DEV": "/dev/sdb",
		"DIRECTORY": "/mnt", "SCRIPTS_DIR": "/mnt", "DIRECT": "1", "PERF_COMPPERCENT": "66", "PERF_COMPCHUNK": "4096",
		"PERF_SYNC_TYPE": "0", "SYNC_TYPE": "0", "BSSPLIT": "4k/50:8k/50", "DIRS": "/mnt", "DIR": "/mnt", "FILESIZE": "1g", "FILE_SIZE": "1g",
	}
	if v, ok := values[name]; ok {
		return v, true
	}
	return "8", true
}

// TestXRayCorpus reads every job file of X-Ray's scenarios: all are native, without an error.
func TestXRayCorpus(t *testing.T) {
	for _, file := range jobFiles(t, testreq.Corpus(t, "xray"), ".fio") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		f, diags := fiojob.Parse(filepath.Base(file), string(text), fiojob.Options{})
		for _, d := range append(diags, f.Unsupported()...) {
			if d.Code != "zonesize-without-zonemode" {
				t.Errorf("%s: %s: %s", file, d.Pos, d.Message)
			}
		}
		for _, j := range f.Jobs() {
			if len(j.Files()) == 0 || j.Name == "" || !j.Direct || j.IOEngine != "libaio" {
				t.Errorf("%s: job %q reads as %+v", file, j.Name, j)
			}
		}
	}
}

// refusedPublic are the files that are not read unchanged, and why.
var refusedPublic = map[string]string{
	"70_30.fio":       "no-job",          // options for jobs of a command line
	"test.fio":        "bad-value",       // filesize=16-8k/8M-512M
	"mixed.fio":       "include-refused", // a file may not pull in others here
	"randread_sp.fio": "include-refused",
	"iops.fio":        "include-refused",
	// They create files or fill a device, and workloads use devices within bounds.
	"create_files_100.fio": "refused-option", "surface-scan.fio": "refused-option",
}

// TestPublicCorpus reads job files of many projects.
func TestPublicCorpus(t *testing.T) {
	for _, file := range jobFiles(t, testreq.Corpus(t, "fio"), "") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		f, diags := fiojob.Parse(filepath.Base(file), string(text), fiojob.Options{CPUs: 2, MemoryMB: 1000, Env: plausible})
		reason := refusedPublic[filepath.Base(file)]
		if reason == "" && len(f.Jobs()) == 0 || reason != "" && !diags.HasErrors() {
			t.Errorf("%s: %d jobs, expected problem %q", file, len(f.Jobs()), reason)
		}
		for _, d := range diags {
			if d.Severity == diag.SeverityError && d.Code != reason {
				t.Errorf("%s: %s: %s [%s]", file, d.Pos, d.Message, d.Code)
			}
		}
	}
}
