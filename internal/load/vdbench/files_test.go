package vdbench_test

import (
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/loadtest"
	"github.com/braggdev/bragg/internal/load/vdbench"
	"github.com/braggdev/bragg/internal/testreq"
)

const smallTree = "fsd=fsd1,anchor=/mnt/a,depth=2,width=3,files=4,sizes=(8k,50,24k,50)\n"

// prefill makes the trees of a workload.
func prefill(t testing.TB, w load.Workload) {
	t.Helper()
	w.Prefill = true
	var log loadtest.Log
	if err := loadtest.Drive(t.Context(), vdbench.Generator{}, w, &log); err != nil {
		t.Fatal(err)
	}
	loadtest.CheckIntervals(t, w, log.Intervals())
}

// treeFiles are all files of a workload's trees.
func treeFiles(t testing.TB, w load.Workload) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(filepath.Dir(w.Devices[0].Path), "vdbench-sdb"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && strings.HasPrefix(d.Name(), "f0") {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// onDisk counts what is below the folder of a workload's trees.
func onDisk(t testing.TB, w load.Workload) (folders, files int, bytes int64) {
	t.Helper()
	found, _ := filepath.Glob(filepath.Join(filepath.Dir(w.Devices[0].Path), "vdbench-sdb", "sdb", "tree-*"))
	for _, root := range found {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && path != root:
				folders++
			case !d.IsDir():
				info, err := d.Info()
				if err != nil {
					return err
				}
				files, bytes = files+1, bytes+info.Size()
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return folders, files, bytes
}

func TestFilesContract(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	for name, text := range map[string]string{
		"closed": smallTree + "fwd=fwd1,fsd=fsd1,operation=read,fileio=random,threads=2\nrd=rd1,fwd=fwd1,fwdrate=max,elapsed=100h\n",
		"open":   smallTree + "fwd=fwd1,fsd=fsd1,operation=getattr\nrd=rd1,fwd=fwd1,fwdrate=2000,elapsed=100h\n",
	} {
		t.Run(name, func(t *testing.T) {
			loadtest.RunAny(t, loadtest.Subject{Generator: vdbench.Generator{}, Endless: func(t testing.TB) load.Workload {
				w := workload(t, text)
				prefill(t, w)
				return w
			}})
		})
	}
}

// A prefill makes what the plan says, as counted on the file system.
func TestFilesOnDisk(t *testing.T) {
	w := workload(t, smallTree+"fsd=fsd2,anchor=/mnt/b,depth=2,width=2,files=2,sizes=4k,distribution=all\nfwd=fwd1,fsd=fsd*,operation=read\nrd=rd1,fwd=fwd1,fwdrate=max,elapsed=4\n")
	prefill(t, w)
	p, err := vdbench.Generator{}.Plan(w)
	if err != nil {
		t.Fatal(err)
	}
	folders, files, bytes := onDisk(t, w)
	if folders != 3+9+2+4 || files != 9*4+6*2 || bytes != p.Extents[0].Length {
		t.Errorf("%d folders, %d files, %d bytes; planned %d", folders, files, bytes, p.Extents[0].Length)
	}
	if large := (bytes - 12*4096 - 36*8192) / 16384; !within(int(large), 36, 0.5) {
		t.Errorf("%d of 36 files have the larger size", large)
	}
}

// drive runs a load and returns its sum and its texts.
func driveFiles(t *testing.T, w load.Workload) (loadtest.Sum, string) {
	t.Helper()
	in, err := vdbench.Generator{}.Prepare(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	var log loadtest.Log
	if err := in.Run(t.Context(), &log); err != nil {
		t.Fatal(err)
	}
	return loadtest.Add(log.Intervals()), in.(load.Teller).Outputs()[0].Text
}

// A skew holds as fast as possible and at a rate, and data and places of writes are within the files.
func TestFileSkew(t *testing.T) {
	const works = "fwd=default,fileio=(random,shared),xfersize=4k,threads=3\nfwd=fwd1,fsd=fsd1,operation=read,skew=70\nfwd=fwd2,fsd=fsd1,operation=write,skew=15\n" +
		"fwd=fwd3,fsd=fsd1,operation=getattr,skew=10\nfwd=fwd4,fsd=fsd1,operation=setattr,skew=5\n"
	for _, rate := range []string{"max", "2000"} {
		w := workload(t, smallTree+works+"rd=rd1,fwd=fwd*,fwdrate="+rate+",elapsed=2,interval=1\n")
		prefill(t, w)
		_, _, before := onDisk(t, w)
		sum, text := driveFiles(t, w)
		total := 0.0
		for i := range sum.Directions {
			total += float64(sum.Directions[i].Operations)
		}
		for i, share := range []float64{0.70, 0.15, 0.10, 0.05} {
			n := float64(sum.Directions[i].Operations)
			if off := math.Abs(n - total*share); off > 100 && off > 6*math.Sqrt(total*share) {
				t.Errorf("rate %s: operation %d has %g of %g, want %g\n%s", rate, i, n, total, share, text)
			}
		}
		if rate != "max" && math.Abs(total-4000) > 6*math.Sqrt(4000) {
			t.Errorf("%g operations in 2 s at %s", total, rate)
		}
		if reads := &sum.Directions[0]; reads.Bytes != reads.Operations*4096 {
			t.Errorf("%d bytes in %d reads", reads.Bytes, reads.Operations)
		}
		if _, _, after := onDisk(t, w); after != before {
			t.Errorf("%d bytes on disk, %d before", after, before)
		}
	}
}

// Names that are made and removed are there, and gone.
func TestFileNames(t *testing.T) {
	w := workload(t, smallTree+"fwd=fwd1,fsd=fsd1,operation=delete\nfwd=fwd2,fsd=fsd1,operation=rmdir\nfwd=fwd3,fsd=fsd1,operation=mkdir\nfwd=fwd4,fsd=fsd1,operation=create\n"+
		"rd=rd1,fwd=fwd1,fwdrate=max,elapsed=1,interval=0.1\nrd=rd2,fwd=fwd2,fwdrate=max,elapsed=1,interval=0.1\n"+
		"rd=rd3,fwd=fwd3,fwdrate=max,elapsed=1,interval=0.1\nrd=rd4,fwd=fwd4,fwdrate=max,elapsed=1,interval=0.1\n")
	prefill(t, w)
	sum, text := driveFiles(t, w)
	for i, want := range []uint64{0, 0, 36, 12, 12, 36} {
		if got := sum.Directions[i].Operations; got != want || len(sum.Directions[i].Errors) > 0 {
			t.Errorf("operation %d: %d and %v, want %d\n%s", i, got, sum.Directions[i].Errors, want, text)
		}
	}
	if folders, files, bytes := onDisk(t, w); folders != 12 || files != 36 || bytes != 0 {
		t.Errorf("%d folders, %d files, %d bytes", folders, files, bytes)
	}
	if !strings.Contains(text, "run 1: fwd1-fsd1: no file is left") {
		t.Errorf("it does not say that work ran out:\n%s", text)
	}
}

// Meanings of format=.
func TestFormat(t *testing.T) {
	run := func(w load.Workload) error {
		var log loadtest.Log
		return loadtest.Drive(t.Context(), vdbench.Generator{}, w, &log)
	}
	text := func(format string) string {
		return smallTree + "fwd=fwd1,fsd=fsd1,operation=read\nrd=rd1,fwd=fwd1,fwdrate=200,elapsed=0.2,format=" + format + "\n"
	}
	w := workload(t, text("no"))
	var known *diag.Error
	if err := run(w); !errors.As(err, &known) || known.Code != "no-data-set" {
		t.Fatalf("without files: %v", err)
	}
	w.Config = text("only")
	if err := run(w); err != nil {
		t.Fatal(err)
	}
	if _, files, _ := onDisk(t, w); files != 36 {
		t.Fatalf("%d files after format=only", files)
	}
	found, _ := filepath.Glob(filepath.Join(filepath.Dir(w.Devices[0].Path), "vdbench-sdb", "sdb", "tree-*", "d1_1", "d2_1", "*"))
	old, err := os.Stat(found[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(found[1]); err != nil {
		t.Fatal(err)
	}
	for format, same := range map[string]bool{"restart": true} {
		w.Config = text(format)
		if err := run(w); err != nil {
			t.Fatal(err)
		}
		now, err := os.Stat(found[0])
		if _, files, _ := onDisk(t, w); err != nil || files != 36 || os.SameFile(old, now) != same {
			t.Errorf("format=%s: %d files, same file: %t, %v", format, files, os.SameFile(old, now), err)
		}
	}
	w.Config = text("yes")
	if err := os.WriteFile(found[2]+".foreign", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(w); err != nil {
		t.Fatal(err)
	}
	if _, files, _ := onDisk(t, w); files != 36 {
		t.Errorf("format=yes leaves %d files", files)
	}
}

// The public parameter files are planned, and run in a rehearsal, one workload for each host.
func TestFilesOfCorpus(t *testing.T) {
	corpus := filepath.Join(testreq.Corpus(t, "vdbench"), "iul1an+vdbench-tests", "tests")
	for name, options := range map[string]map[string]string{
		"distributed/100-Reads.vdb":          {"host": "hd2", "var_host1": "a", "var_host2": "b", "var_anchor1": "/mnt/a", "var_anchor2": "/mnt/b", "var_vdbench_path": "/opt"},
		"non-distributed/7015RW-105GaSa.vdb": {"var_host1": "a", "var_anchor1": "/mnt/a", "var_vdbench_path": "/opt"},
	} {
		text, err := os.ReadFile(filepath.Join(corpus, name))
		if err != nil {
			t.Fatal(err)
		}
		w := workload(t, string(text))
		w.Options = options
		w.Devices[0].SizeBytes = 2 << 40
		p, err := vdbench.Generator{}.Plan(w)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if mean := float64(p.Extents[0].Length) / (376832); name[0] == 'n' && math.Abs(mean-102_400) > 1000 {
			t.Errorf("%s: as many bytes as %g files of the mean size", name, mean)
		}
		w.Scale, w.Runtime = load.Scale{Factor: 1e-3, BlocksMin: 1}, time.Second
		if testing.Short() {
			continue
		}
		prefill(t, w)
		if sum, text := driveFiles(t, w); sum.Directions[0].Operations < 10 {
			t.Errorf("%s: %d reads\n%s", name, sum.Directions[0].Operations, text)
		}
	}
}

func TestFilesRefused(t *testing.T) {
	for text, want := range map[string]string{
		"fwd=fwd1,fsd=fsd1,operation=copy\nrd=rd1,fwd=fwd1,fwdrate=max\n":                                            "2 not-translated",
		"fwd=fwd1,fsd=fsd1,fileio=(seq,delete)\nrd=rd1,fwd=fwd1,fwdrate=max\n":                                       "2 not-translated",
		"fwd=fwd1,fsd=fsd1,fileselect=(skewed,3)\nrd=rd1,fwd=fwd1,fwdrate=max\n":                                     "2 not-translated",
		"fwd=fwd1,fsd=fsd1,stopafter=5\nrd=rd1,fwd=fwd1,fwdrate=max\n":                                               "2 not-translated",
		"fwd=fwd1,fsd=fsd1,openflags=directio,xfersize=1000\nrd=rd1,fwd=fwd1,fwdrate=max\n":                          "2 not-translated",
		"fwd=fwd1,fsd=fsd1\nrd=rd1,fwd=fwd1,fwdrate=1e30\n":                                                          "3 not-translated",
		"fwd=fwd1,fsd=fsd1\nrd=rd1,fwd=fwd1,fwdrate=curve\n":                                                         "3 not-translated",
		"fwd=fwd1,fsd=fsd1\nrd=rd1,fwd=fwd1,fwdrate=max,format=(yes,limited)\n":                                      "3 not-translated",
		"fwd=fwd1,fsd=fsd1\nrd=rd1,fwd=fwd1,fwdrate=max,forfiles=(1,2)\n":                                            "3 not-translated",
		"fsd=fsd2,anchor=/mnt/a/,depth=1,width=1,files=1,sizes=4k\nfwd=fwd1,fsd=fsd1\nrd=rd1,fwd=fwd1,fwdrate=max\n": "2 not-translated",
		"fsd=fsd2,anchor=/mnt/b,depth=9,width=99,files=1,sizes=4k\nfwd=fwd1,fsd=fsd1\nrd=rd1,fwd=fwd1,fwdrate=max\n": "2 not-translated",
	} {
		got := vdbench.Check("test.parm", smallTree+text, nil)
		if all := lines(got.Issues); len(all) != 1 || all[0] != want || len(got.Runs) > 0 {
			t.Errorf("%q: %q", text, all)
		}
	}
}

// No block of 4 KiB is written twice, by a prefill or by a load: storage that finds equal blocks stores all of them.
func TestFileContent(t *testing.T) {
	const parmfile = "fsd=fsd1,anchor=/mnt/a,depth=1,width=2,files=16,size=160k\nfwd=fwd1,fsd=fsd1,operation=write,fileio=random,xfersize=8k,threads=4\n" +
		"rd=rd1,fwd=fwd1,fwdrate=2000,elapsed=2,interval=1\n"
	first, second := workload(t, parmfile), workload(t, parmfile)
	second.Group, second.VM, second.Number = "H", "H-0001", first.Number+1
	both := []load.Workload{first, second}
	for _, w := range both {
		prefill(t, w)
	}
	count := func(when string) {
		seen := map[[16]byte]int{}
		blocks, kept := 0, 0
		for _, path := range append(treeFiles(t, first), treeFiles(t, second)...) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for ; len(data) >= 4096; data = data[4096:] {
				seen[md5.Sum(data[:4096])]++
				blocks++
			}
		}
		for _, n := range seen {
			kept += n - 1
		}
		if blocks != 2*32*40 || kept > 0 {
			t.Errorf("%s: %d of %d blocks are there before", when, kept, blocks)
		}
	}
	count("prefill")
	t.Run("loads", func(t *testing.T) {
		for _, w := range both {
			t.Run(w.Group, func(t *testing.T) {
				t.Parallel()
				driveFiles(t, w)
			})
		}
	})
	count("load")
}

// Operations of a rate that the files do not sustain are dropped, and all that were due are counted.
func TestFileRateTooHigh(t *testing.T) {
	const rate, seconds = 100_000, 2
	w := workload(t, fmt.Sprintf("fsd=fsd1,anchor=/mnt/a,depth=1,width=1,files=2,size=64k,openflags=o_sync\n"+
		"fwd=fwd1,fsd=fsd1,operation=write,fileio=random,xfersize=4k,threads=1\nrd=rd1,fwd=fwd1,fwdrate=%d,elapsed=%d,interval=1\n", rate, seconds))
	prefill(t, w)
	sum, text := driveFiles(t, w)
	done := sum.Directions[1].Operations
	if off := math.Abs(float64(sum.Due) - rate*seconds); off > 6*math.Sqrt(rate*seconds) {
		t.Errorf("%d operations were due, want %d", sum.Due, rate*seconds)
	}
	if sum.NotIssued == 0 || sum.NotIssued != sum.Due-done {
		t.Errorf("%d of %d operations due were done, and %d dropped", done, sum.Due, sum.NotIssued)
	}
	if want := fmt.Sprintf("run 1: %d operations were due and never issued", sum.NotIssued); !strings.Contains(text, want) {
		t.Errorf("%s\nwant %q", text, want)
	}
}

// Workloads that make and remove what others need go on for the whole run, and do not disturb each other.
func TestFilesComeAndGo(t *testing.T) {
	w := workload(t, "fsd=fsd1,anchor=/mnt/a,depth=2,width=3,files=2,size=4k\nfwd=default,fsd=fsd1,threads=3\nfwd=mk,operation=mkdir\nfwd=rm,operation=rmdir\n"+
		"fwd=cr,operation=create\nfwd=de,operation=delete\nrd=rd1,fwd=(mk,rm,cr,de),fwdrate=max,elapsed=2,interval=1,format=directories\n")
	began := time.Now()
	sum, text := driveFiles(t, w)
	if took := time.Since(began); took < 2*time.Second {
		t.Errorf("the run took %s\n%s", took, text)
	}
	for kind, d := range sum.Directions {
		if kind >= 2 && kind < 6 && d.Operations < 10 || len(d.Errors) > 0 {
			t.Errorf("operation %d: %d, errors %v\n%s", kind, d.Operations, d.Errors, text)
		}
	}
}

// What nothing makes is not waited for.
func TestFilesEnd(t *testing.T) {
	w := workload(t, smallTree+"fwd=de,fsd=fsd1,operation=delete,threads=4\nfwd=rm,fsd=fsd1,operation=rmdir,threads=4\n"+
		"rd=rd1,fwd=(de,rm),fwdrate=max,elapsed=60,interval=1\n")
	prefill(t, w)
	began := time.Now()
	sum, text := driveFiles(t, w)
	if took := time.Since(began); took > 20*time.Second || sum.Directions[2].Operations != 36 || sum.Directions[3].Operations != 12 {
		t.Errorf("%d files and %d folders were removed in %s\n%s", sum.Directions[2].Operations, sum.Directions[3].Operations, took, text)
	}
}

// A load of files that fail ends, and says why.
func TestFileErrors(t *testing.T) {
	w := workload(t, "data_errors=5\n"+smallTree+"fwd=fwd1,fsd=fsd1,operation=getattr\nrd=rd1,fwd=fwd1,fwdrate=max,elapsed=30\n")
	prefill(t, w)
	in, err := vdbench.Generator{}.Prepare(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	found, _ := filepath.Glob(filepath.Join(filepath.Dir(w.Devices[0].Path), "vdbench-sdb", "sdb", "tree-*"))
	if err := os.RemoveAll(found[0]); err != nil {
		t.Fatal(err)
	}
	var log loadtest.Log
	err = in.Run(context.Background(), &log)
	var known *diag.Error
	if !errors.As(err, &known) || known.Code != "data-errors" || !strings.Contains(known.Message, "ENOENT") {
		t.Errorf("%v", err)
	}
}

func TestFileSystems(t *testing.T) {
	loadtest.RunFileSystems(t, vdbench.Generator{}, func(t testing.TB) load.Workload {
		w := workload(t, smallTree+"fwd=fwd1,fsd=fsd1,operation=read,fileio=random,threads=2\nrd=rd1,fwd=fwd1,fwdrate=max,elapsed=100h\n")
		w.Runtime = 400 * time.Millisecond
		return w
	})
}
