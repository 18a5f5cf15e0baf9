package iojob_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/braggdev/bragg/internal/fio/fioreport"
	"github.com/braggdev/bragg/internal/fio/iojob"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/testreq"
)

// runSaying runs jobs in a folder and returns what was said too.
func runSaying(t *testing.T, dir, text string) (*fioreport.Report, string) {
	t.Helper()
	_, file := parse(t, dir, text)
	var said strings.Builder
	report, err := iojob.Run(t.Context(), file.Jobs(), iojob.Options{Folder: dir, Say: func(s string) { said.WriteString(s + "\n") }})
	if err != nil {
		t.Fatal(err)
	}
	return report, said.String()
}

// fioFails runs fio on a job file and returns its exit and what it said.
func tryFio(t *testing.T, dir, text string, args ...string) (string, error) {
	t.Helper()
	testreq.Program(t, "fio")
	path := filepath.Join(dir, "verify.fio")
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "@", dir)), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("fio", append(args, "--verify_state_save=0", path)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func flip(t *testing.T, path string, at int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var b [1]byte
	_, err = f.ReadAt(b[:], at)
	b[0] ^= 32
	if _, werr := f.WriteAt(b[:], at); err != nil || werr != nil {
		t.Fatal(err, werr)
	}
}

// What one tool writes the other one verifies, and both find a changed byte at the same place.
func TestVerifiesWithFioBothWays(t *testing.T) {
	for _, c := range []struct {
		name, options string
		interval      int64
		at            int64 // a byte of it is changed
		file          string
	}{
		{"crc32c", "rw=randwrite\nbs=4k\nverify=crc32c", 4096, 40_000, "data"},
		{"md5", "rw=write\nbs=64k\nverify=md5\nverify_interval=8k", 8192, 200_007, "data"},
		{"crc32c 8k", "rw=randwrite\nbs=8k\nverify=crc32c\nverify_interval=4k\noffset=12k", 4096, 400_000, "data"},
		{"xxhash, mixed", "rw=randwrite\nbsrange=4k-16k\nverify=xxhash", 4096, 300_000, "data"},
		{"sha256, libaio", "rw=randwrite\nbs=4k\nioengine=libaio\niodepth=16\ndirect=1\nverify=sha256", 4096, 500_001, "data"},
		{"sha3-256, files", "rw=write\nbs=4k\nfilename=@/data:@/more\nverify=sha3-256", 4096, 77_777, "more"},
		{"pattern", "rw=randwrite\nbs=8k\nverify=pattern\nverify_pattern=0xdeadbeef%o\"text\"", 8192, 300_000, "data"},
		{"meta with pattern", "rw=write\nbs=16k\nverify=meta\nverify_interval=512\nverify_pattern=%o", 512, 99_840 + 17, "data"},
		{"crc64, clones", "rw=randwrite\nbs=4k\nverify=crc64\nnumjobs=3\noffset_increment=1m\nsize=1m", 4096, 2_500_000, "data"},
		{"sha1, header elsewhere", "rw=write\nbs=4k\nverify=sha1\nverify_offset=512", 4096, 123_456, "data"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if testing.Short() && c.name != "crc32c" && c.name != "md5" {
				t.Skip("long")
			}
			t.Parallel()
			text := "[x]\nfilename=@/data\nsize=1m\n" + c.options + "\n"
			if strings.Contains(c.options, "filename") {
				text = "[x]\nsize=1m\n" + c.options + "\n"
			}
			dir := t.TempDir()
			report, said := runSaying(t, dir, text)
			read, written := report.Rows[0].Directions[interval.Read].Bytes, report.Rows[0].Directions[interval.Write].Bytes
			if report.Rows[0].Err != nil || said != "" || read != written || written == 0 {
				t.Fatalf("%d bytes written, %d read back, %v\n%s", written, read, report.Rows[0].Err, said)
			}
			reading := strings.NewReplacer("rw=randwrite", "rw=read", "rw=write", "rw=read").Replace(text)
			only := text + "verify_only=1\n"
			if out, err := tryFio(t, dir, only, "--verify_fatal=1"); err != nil {
				t.Errorf("fio does not verify what we wrote: %v\n%s", err, out)
			}
			checkFlip(t, dir, only, filepath.Join(dir, c.file), c.at, c.interval)
			if out, err := tryFio(t, dir, text); err != nil {
				t.Fatalf("fio: %v\n%s", err, out)
			}
			for _, again := range []string{reading, only} {
				if strings.Contains(again, "bsrange") && again == reading {
					again = strings.Replace(again, "bsrange=4k-16k", "bs=4k", 1)
				}
				report, said := runSaying(t, dir, again)
				if err := report.Rows[0].Err; err != nil || strings.Contains(said, "verify:") || report.Rows[0].Directions[interval.Read].Operations == 0 {
					t.Errorf("what fio wrote does not verify: %v\n%s", err, said)
				}
			}
			checkFlip(t, dir, only, filepath.Join(dir, c.file), c.at, c.interval)
		})
	}
}

// checkFlip changes one byte and lets both tools find it.
func checkFlip(t *testing.T, dir, only, path string, at, length int64) {
	t.Helper()
	flip(t, path, at)
	defer flip(t, path, at)
	place := at / length * length
	report, said := runSaying(t, dir, only+"verify_dump=1\n")
	var failed error
	for _, row := range report.Rows {
		failed = errors.Join(failed, row.Err)
	}
	if want := fmt.Sprintf("file %q, offset %d: %d bytes", path, place, length); !errors.Is(failed, syscall.Errno(84)) || !strings.Contains(said, want) || strings.Count(said, "verify:") != 1 {
		t.Errorf("byte %d was changed: %v\n%s\nwant error 84 and %q", at, failed, said, want)
	}
	bad, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("%s.%d.received", filepath.Base(path), place)))
	if err != nil || int64(len(bad)) != length {
		t.Errorf("the wrong block was not dumped: %d bytes, %v", len(bad), err)
	}
	out, err := tryFio(t, dir, only, "--verify_fatal=1")
	if want := fmt.Sprintf("offset %d, length", place); err == nil || !strings.Contains(out, want) || !strings.Contains(out, "err=84") {
		t.Errorf("fio does not say %q: %v\n%s", want, err, out)
	}
}

// After verify_dump the block that was written and the one that is there are in files.
func TestDumpsHoldWhatWasWrittenAndWhatIsThere(t *testing.T) {
	dir := t.TempDir()
	text := "[x]\nfilename=@/data\nsize=1m\nrw=randwrite\nbs=8k\nverify=crc32c\nverify_interval=4k\n"
	run(t, dir, text)
	path := filepath.Join(dir, "data")
	written, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	flip(t, path, 70_000)
	runSaying(t, dir, text+"verify_only=1\nverify_dump=1\n")
	received, err := os.ReadFile(filepath.Join(dir, "data.69632.received"))
	if err != nil || bytes.Equal(received, written[69632:73728]) {
		t.Errorf("received: %d bytes, %v", len(received), err)
	}
	received[70_000-69632] ^= 32
	if !bytes.Equal(received, written[69632:73728]) {
		t.Error("what was dumped is not what was read")
	}
	// A job that only reads knows no more than the header says.
	if err := os.Remove(filepath.Join(dir, "data.69632.expected")); err != nil {
		t.Fatal(err)
	}
	runSaying(t, dir, strings.Replace(text, "rw=randwrite", "rw=read", 1)+"verify_dump=1\n")
	expected, err := os.ReadFile(filepath.Join(dir, "data.69632.expected"))
	if err != nil || !bytes.Equal(expected, written[69632:73728]) {
		t.Errorf("expected: %d bytes, %v", len(expected), err)
	}
}

// verify_fatal ends a job at the first wrong block. Without it all of them are counted, and continue_on_error=verify makes
// that no failure.
func TestMismatchesStopOrCount(t *testing.T) {
	dir := t.TempDir()
	text := "[x]\nfilename=@/data\nsize=1m\nbs=4k\nrw=write\nverify=crc32c\n"
	run(t, dir, text)
	for _, at := range []int64{50_000, 250_000, 251_000, 900_000} {
		flip(t, filepath.Join(dir, "data"), at)
	}
	reading := strings.Replace(text, "rw=write", "rw=read", 1)
	for _, c := range []struct {
		options string
		reads   uint64
		wrong   uint64
		fails   bool
		json    string
	}{
		{"", 256, 3, true, `"error": 84`},
		{"verify_fatal=1\n", 13, 1, true, `"error": 84`},
		{"continue_on_error=verify\n", 256, 3, false, `"total_err": 3`},
		{"continue_on_error=all\nverify_fatal=1\n", 256, 3, false, `"first_error": 84`},
		{"continue_on_error=read\n", 256, 3, true, `"total_err": 3`},
	} {
		report, said := runSaying(t, dir, reading+c.options)
		row := report.Rows[0]
		got := row.Directions[interval.Read]
		if got.Operations != c.reads || row.Account.MismatchCount != c.wrong || (row.Err != nil) != c.fails || strings.Count(said, "verify:") != int(c.wrong) {
			t.Errorf("%q: %d reads, %d wrong, %v, want %d, %d, failure %v\n%s", c.options, got.Operations, row.Account.MismatchCount, row.Err,
				c.reads, c.wrong, c.fails, said)
		}
		if got.Errors["EILSEQ"] != c.wrong {
			t.Errorf("%q: errors %v", c.options, got.Errors)
		}
		_, file := parse(t, dir, reading+c.options)
		var document, shown bytes.Buffer
		if err := errors.Join(report.WriteJSON(&document, labels(file)), report.WriteText(&shown)); err != nil || !json.Valid(document.Bytes()) {
			t.Fatal(err)
		}
		if !strings.Contains(document.String(), c.json) || !strings.Contains(shown.String(), "err=84") {
			t.Errorf("%q: no %s in\n%s\n%s", c.options, c.json, document.String(), shown.String())
		}
	}
}

// Writes that failed are not verified as if they had succeeded, and what they may have destroyed neither.
func TestFailedWritesAreNotVerified(t *testing.T) {
	testreq.Root(t)
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", dir).CombinedOutput(); err != nil {
		t.Fatalf("mount: %v %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("umount", dir).Run() })
	for _, options := range []string{"", "norandommap\n", "verify_backlog=32\n", "ioengine=libaio\niodepth=8\nnorandommap\nio_size=8m\n"} {
		path := filepath.Join(dir, "data")
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, 4<<20); err != nil {
			t.Fatal(err)
		}
		report, said := runSaying(t, dir, "[x]\nfilename=@/data\nsize=4m\nrw=randwrite\nbs=4k\nverify=crc32c\ncontinue_on_error=all\n"+options)
		row := report.Rows[0]
		if row.Directions[interval.Write].Errors["ENOSPC"] == 0 || row.Directions[interval.Write].Operations == 0 {
			t.Fatalf("%q: %d writes, errors %v", options, row.Directions[interval.Write].Operations, row.Directions[interval.Write].Errors)
		}
		if row.Account.MismatchCount != 0 || row.Directions[interval.Read].Operations == 0 {
			t.Errorf("%q: %d reads, %d wrong\n%s", options, row.Directions[interval.Read].Operations, row.Account.MismatchCount, said)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

// Differences from fio are warned about.
func TestVerificationWarns(t *testing.T) {
	for _, c := range []struct{ options, want string }{
		{"rw=randwrite\nverify=crc32c\ntime_based\nruntime=300ms\n", "fio would not verify"},
		{"rw=randwrite\nverify=md5\nnumjobs=2\n", "several clones write to the same places"},
		{"rw=write\nverify=md5\nioengine=null\n", "nothing is verified"},
		{"rw=read\nverify=sha512\ncontinue_on_error=verify\n", "no digest"},
	} {
		report, said := runSaying(t, t.TempDir(), "[x]\nfilename=@/data\nsize=256k\nbs=4k\n"+c.options)
		if !strings.Contains(said, c.want) {
			t.Errorf("%q says %q, want %q", c.options, said, c.want)
		}
		if strings.Contains(c.options, "rw=randwrite") && report.Rows[0].Directions[interval.Read].Operations == 0 {
			t.Errorf("%q verifies nothing", c.options)
		}
		for _, row := range report.Rows {
			if row.Err != nil {
				t.Errorf("%q: %v", c.options, row.Err)
			}
		}
	}
	_, file := parse(t, t.TempDir(), "[x]\nfilename=@/data\nsize=256k\nrw=write\nverify=crc32c\nverify_only\n")
	if _, err := iojob.Run(t.Context(), file.Jobs(), iojob.Options{}); err == nil || !strings.Contains(err.Error(), "verify_only") {
		t.Errorf("verify_only without a file: %v", err)
	}
}

// The write's time is not that of reading back, which has its own.
func TestReadingBackHasItsOwnTime(t *testing.T) {
	report := run(t, t.TempDir(), "[x]\nfilename=@/data\nsize=2m\nbs=4k\nrw=write\nrate_iops=2000\nverify=crc32c\n")
	row := report.Rows[0]
	read, write := row.Directions[interval.Read], row.Directions[interval.Write]
	if read.Operations != 512 || write.Operations != 512 || read.Runtime+write.Runtime > row.Runtime+2 || read.Runtime <= 0 || write.Runtime <= 0 {
		t.Errorf("%d writes in %v and %d reads in %v, of %v", write.Operations, write.Runtime, read.Operations, read.Runtime, row.Runtime)
	}
}

// Public job files that verify run, on files of our own and smaller.
func TestCorpusVerifies(t *testing.T) {
	for name, c := range map[string]struct {
		path    string
		replace []string
	}{
		"basic-verify": {"axboe+fio/basic-verify.fio", []string{"filename=/dev/" + strings.Repeat("X", 3), "filename=@/data\nsize=4m"}},
		"surface-scan": {"axboe+fio/surface-scan.fio", []string{"[global]", "[global]\nsize=4m", "fill_device=1", "", "datafile.tmp", "@/data"}}, // fill_device is refused
		"cross-stripe": {"axboe+fio/cross-stripe-verify.fio", []string{"/dev/nvme0n1", "@/data", "124g", "2m", "120g", "512k", "numjobs=30", "numjobs=4\nfilesize=16m"}},
		"storpool":     {"storpool+fio-tests/verify-s", []string{"size=8G", "size=16M\nfilename=@/data"}},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(testreq.Corpus(t, "fio"), c.path))
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			report, said := runSaying(t, dir, strings.NewReplacer(c.replace...).Replace(string(text)))
			var reads uint64
			for _, row := range report.Rows {
				reads += row.Directions[interval.Read].Operations
				if row.Err != nil || row.Account.MismatchCount > 0 {
					t.Errorf("%s: %v\n%s", row.Name, row.Err, said)
				}
			}
			if reads == 0 {
				t.Error("nothing was verified")
			}
		})
	}
}
