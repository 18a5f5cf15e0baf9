package iojob_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/fio/fioreport"
	"github.com/braggdev/bragg/internal/fio/iojob"
	"github.com/braggdev/bragg/internal/interval"
)

// What was written in an order that only its writer drew is found by its headers: fio's, and that of another seed. A block
// that is wrong is found, and so is one that has lost its header.
func TestVerifiesWhatOthersWroteInPart(t *testing.T) {
	const md5 = "\nfilename=@/data\nsize=1m\nverify=md5\nbs=4k\n"
	for _, c := range []struct {
		name, options string
		written       string // options of the writer alone
		fio           bool
		blind         bool // of places that may come twice it is not known how many were written
	}{
		{name: "fio", options: "rw=randwrite\nio_size=500k", fio: true},
		{name: "fio, number_ios", options: "rw=randwrite\nnumber_ios=100", fio: true},
		{name: "fio, randrw", options: "rw=randrw\nio_size=500k", fio: true, blind: true},
		{name: "fio, mixed sizes", options: "rw=randwrite\nbsrange=4k-16k\nnorandommap\nio_size=500k", fio: true, blind: true},
		{name: "fio, files", options: "rw=randwrite\nfilename=@/data:@/more\nio_size=500k\nfile_service_type=random", fio: true, blind: true},
		{name: "fio, an odd io_size", options: "rw=randwrite\nio_size=501000", fio: true},
		{name: "fio, a share of it", options: "rw=randwrite\nio_size=37%", fio: true, blind: true},
		{name: "fio, clones", options: "rw=randwrite\nnumjobs=2\ngroup_reporting\nio_size=300k", fio: true, blind: true},
		{name: "another seed", options: "rw=randwrite\nio_size=500k", written: "randseed=7"},
		{name: "an order of another seed over all of it", options: "rw=randwrite", written: "randseed=7"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			job := "[w]" + md5 + c.options + "\ndo_verify=0\n" + c.written + "\n"
			if c.fio {
				if out, err := tryFio(t, dir, job); err != nil {
					t.Fatal(out)
				}
			} else {
				runSaying(t, dir, job)
			}
			check := "[v]" + md5 + c.options + "\nverify_only\n"
			report, said := runSaying(t, dir, check)
			if row := &report.Rows[0]; row.Err != nil || row.Account.MismatchCount > 0 {
				t.Fatalf("%v\n%s", row.Err, said)
			}
			if warned := strings.Contains(said, "not known exactly"); warned != c.blind {
				t.Errorf("says that a lost header may not be noticed: %v, want %v\n%s", warned, c.blind, said)
			}
			path, at := headerAfter(t, filepath.Join(dir, "data"), 100_000)
			flip(t, path, at+2000)
			if report, said := runSaying(t, dir, check); report.Rows[0].Err == nil {
				t.Errorf("a wrong byte at %d was not found\n%s", at+2000, said)
			}
			flip(t, path, at+2000)
			flip(t, path, at)
			if report, said := runSaying(t, dir, check); report.Rows[0].Err == nil && !c.blind {
				t.Errorf("a lost header at %d was not found\n%s", at, said)
			}
		})
	}
}

// headerAfter returns a file and the place of a block with a header in it.
func headerAfter(t *testing.T, path string, from int) (string, int64) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for at := from / 4096 * 4096; at < len(data); at += 4096 {
		if bytes.HasPrefix(data[at:], []byte{0xca, 0xac}) {
			return path, int64(at)
		}
	}
	t.Fatal("nothing was written")
	return "", 0
}

// A job that reads finds what fio wrote in part too.
func TestReadsWhatFioWroteInPart(t *testing.T) {
	dir := t.TempDir()
	common := "\nfilename=@/data\nsize=1m\nbs=4k\nverify=crc32c\nio_size=500k\n"
	if out, err := tryFio(t, dir, "[w]"+common+"rw=randwrite\ndo_verify=0\n"); err != nil {
		t.Fatal(out)
	}
	report, said := runSaying(t, dir, "[r]"+common+"rw=randread\n")
	if row := &report.Rows[0]; row.Err != nil || row.Account.MismatchCount > 0 {
		t.Fatalf("%v\n%s", row.Err, said)
	}
	path, at := headerAfter(t, filepath.Join(dir, "data"), 100_000)
	flip(t, path, at)
	if report, said := runSaying(t, dir, "[r]"+common+"rw=randread\n"); report.Rows[0].Err == nil {
		t.Errorf("a lost header was not found\n%s", said)
	}
}

// A job that only reads does not know how much was written, where its places may come twice or where more has headers than
// it reads: a block without a header may be one that was lost, so it is an error, as in fio.
func TestReadsReportBlocksWithoutHeaders(t *testing.T) {
	for _, c := range []struct{ name, write, read string }{
		{"places may come twice", "rw=write", "rw=randread\nnorandommap\nio_size=4m"},
		{"in part", "rw=randwrite\nio_size=500k", "rw=randread\nnorandommap\nio_size=500k"},
		{"zipf", "rw=write", "rw=randread\nrandom_distribution=zipf:1.2\nio_size=16m"},
		{"half random", "rw=write", "rw=randread\npercentage_random=50\nio_size=4m"},
		{"less is read than was written", "rw=write", "rw=randread\nio_size=500k"},
		{"number_ios", "rw=write", "rw=randread\nnumber_ios=125"},
		{"mixed sizes", "rw=write", "rw=randread\nbsrange=4k-16k\nverify_interval=4k\nio_size=900k"},
		{"two clones", "rw=write", "rw=randread\nnumjobs=2\ngroup_reporting\nio_size=500k"},
		{"with a runtime", "rw=randwrite\nio_size=500k", "rw=randread\nruntime=20\nio_size=500k"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			common := "\nfilename=@/data\nsize=1m\nbs=4k\nverify=crc32c\n"
			runSaying(t, dir, "[w]"+common+c.write+"\ndo_verify=0\n")
			zero(t, filepath.Join(dir, "data"), 0, 256<<10)
			report, said := runSaying(t, dir, "[r]"+common+c.read+"\n")
			if row := &report.Rows[0]; !errors.Is(row.Err, syscall.Errno(84)) || row.Account.MismatchCount == 0 || row.Directions[interval.Read].Errors["EILSEQ"] == 0 {
				t.Errorf("%v, %d blocks wrong, errors %v\n%s", row.Err, row.Account.MismatchCount, row.Directions[interval.Read].Errors, said)
			}
		})
	}
}

// zero makes length bytes of a file zeroes.
func zero(t *testing.T, path string, at, length int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(make([]byte, length), at); err != nil {
		t.Fatal(err)
	}
}

// What a job that only reads looks at besides its own reads does not count as these, and its time is not theirs.
func TestSurveyIsNoTraffic(t *testing.T) {
	dir := t.TempDir()
	common := "\nfilename=@/data\nsize=4m\nbs=4k\nverify=crc32c\nio_size=200k\n"
	if out, err := tryFio(t, dir, "[w]"+common+"rw=randwrite\ndo_verify=0\n"); err != nil {
		t.Fatal(out)
	}
	report, said := runSaying(t, dir, "[r]"+common+"rw=randread\nrate_iops=100\n")
	row := &report.Rows[0]
	read := &row.Directions[interval.Read]
	if row.Err != nil || row.Account.SurveyedBytes != 200<<10 {
		t.Fatalf("%v, %d bytes found by their headers\n%s", row.Err, row.Account.SurveyedBytes, said)
	}
	if read.Operations != 50 || read.Bytes != 200<<10 {
		t.Errorf("%d reads of %d bytes", read.Operations, read.Bytes)
	}
	// Fifty reads at a hundred a second: none of them can be earlier than its rate has it.
	if rate := float64(read.Operations) / read.Runtime.Seconds(); rate > 120 {
		t.Errorf("%.0f reads a second instead of 100, in %v of %v", rate, read.Runtime, row.Runtime)
	}
	if row.Account.SurveyNanos <= 0 || read.Runtime >= row.Runtime {
		t.Errorf("the survey took %d ns; reads ran for %v of %v", row.Account.SurveyNanos, read.Runtime, row.Runtime)
	}
}

// Blocks that had no header are not forgotten: not when one after them shows that they should have had one, and not when the
// job ends before all of the region was read.
func TestMissingHeadersAreNotForgotten(t *testing.T) {
	const common = "\nfilename=@/data\nsize=1m\nbs=4k\nverify=crc32c\nrw=randwrite\nio_size=500k\n"
	for _, c := range []struct {
		name, options string
		wrong, most   uint64
	}{
		{"all are counted", "", 32, 32},
		{"verify_fatal ends the job", "verify_fatal=1\n", 1, 32},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			runSaying(t, dir, "[w]"+common+"do_verify=0\n")
			path := filepath.Join(dir, "data")
			for range 32 {
				_, at := headerAfter(t, path, 0)
				zero(t, path, at, 4096)
			}
			report, said := runSaying(t, dir, "[v]"+common+"verify_only\nverify_dump=1\n"+c.options)
			row := &report.Rows[0]
			if row.Err == nil || row.Account.MismatchCount < c.wrong || row.Account.MismatchCount > c.most {
				t.Errorf("%v, %d blocks wrong, want %d to %d\n%s", row.Err, row.Account.MismatchCount, c.wrong, c.most, said)
			}
			if all := row.Directions[interval.Read].Operations == 125; all == strings.Contains(c.options, "fatal") {
				t.Errorf("%d reads", row.Directions[interval.Read].Operations)
			}
			if dumps, err := filepath.Glob(filepath.Join(dir, "data.*.received")); err != nil || uint64(len(dumps)) != row.Account.MismatchCount {
				t.Errorf("%d dumps of %d blocks, %v", len(dumps), row.Account.MismatchCount, err)
			}
		})
	}
}

// A job that is stopped before it is known whether blocks should have had headers says that they have none.
func TestStopCountsMissingHeaders(t *testing.T) {
	dir := t.TempDir()
	text := "[v]\nfilename=@/data\nsize=64m\nbs=4k\nverify=crc32c\nrw=randwrite\nio_size=60m\nverify_only\nioengine=sync\n"
	if err := os.WriteFile(filepath.Join(dir, "data"), make([]byte, 64<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	_, file := parse(t, dir, text)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var said strings.Builder
	report, err := iojob.Run(ctx, file.Jobs(), iojob.Options{Folder: dir, Say: func(s string) { said.WriteString(s + "\n") },
		WatchEvery: time.Millisecond, Watch: func(r *fioreport.Report) {
			if r.Rows[0].Directions[interval.Read].Operations > 0 {
				stop()
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	row := &report.Rows[0]
	if read := row.Directions[interval.Read].Operations; row.Account.MismatchCount == 0 || row.Account.MismatchCount > read ||
		row.Directions[interval.Read].Errors["EILSEQ"] != row.Account.MismatchCount {
		t.Errorf("%d blocks wrong of %d reads, errors %v\n%s", row.Account.MismatchCount, read, row.Directions[interval.Read].Errors, said.String())
	}
}
