package iojob_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/fio/fioreport"
	"github.com/braggdev/bragg/internal/fio/iojob"
	"github.com/braggdev/bragg/internal/interval"
)

// runLocal runs jobs that may name files of this machine.
func runLocal(t *testing.T, dir, text string) (*fioreport.Report, error) {
	t.Helper()
	file, list := fiojob.Parse("job.fio", strings.ReplaceAll(text, "@", dir), fiojob.Options{Host: true})
	if list.HasErrors() {
		t.Fatal(list)
	}
	return iojob.Run(t.Context(), file.Jobs(), iojob.Options{})
}

// Each file is made, looked up and deleted once, and each time is counted; fio counts no time for half of its operations.
func TestNamesOfFiles(t *testing.T) {
	dir := t.TempDir()
	const job = "[global]\ndirectory=@/deep/er\nnrfiles=25\nfilesize=8k\n[j]\nnumjobs=2\ngroup_reporting\nioengine="
	for _, c := range []struct {
		engine string
		left   int
	}{{"filecreate", 50}, {"filestat", 50}, {"filedelete", 0}} {
		if c.engine == "filedelete" {
			if err := os.RemoveAll(filepath.Join(dir, "deep")); err != nil {
				t.Fatal(err)
			}
		}
		report, err := runLocal(t, dir, job+c.engine+"\n")
		if err != nil {
			t.Fatal(err)
		}
		row := &report.Rows[0]
		read := &row.Directions[interval.Read]
		if row.Err != nil || read.Operations != 50 || read.Bytes != 0 || read.Service.Count() != 50 || read.Service.Min() == 0 {
			t.Errorf("%s: %v, %d operations of %d bytes, %d latencies", c.engine, row.Err, read.Operations, read.Bytes, read.Service.Count())
		}
		if left := listing(t, dir); len(left) != c.left {
			t.Errorf("%s left %d files, want %d", c.engine, len(left), c.left)
		}
	}
}

// Nothing that was there before is deleted or taken for made, and a file that cannot be made is an error of its job.
func TestNamesOfFilesThatWereThere(t *testing.T) {
	dir := t.TempDir()
	precious := filepath.Join(dir, "precious")
	if err := os.WriteFile(precious, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for engine, want := range map[string]string{"filedelete": "was there before", "filecreate": "is there already"} {
		_, err := runLocal(t, dir, "[a]\nfilename=@/new:@/precious\nfilesize=4k\nioengine="+engine+"\n")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", engine, err, want)
		}
		if left := listing(t, dir); fmt.Sprint(left) != "[/precious 1]" {
			t.Errorf("%s left %v", engine, left)
		}
	}
	report, err := runLocal(t, dir, "[a]\nfilename=@/precious/below\nfilesize=4k\nioengine=filecreate\n")
	if err == nil && report.Rows[0].Err == nil {
		t.Error("a file below a file was made")
	}
	if _, list := fiojob.Parse("job.fio", "[a]\nfilename=x\nioengine=filedelete\n", fiojob.Options{}); !list.HasErrors() {
		t.Error("filedelete is not refused where jobs are not of this machine")
	}
}
