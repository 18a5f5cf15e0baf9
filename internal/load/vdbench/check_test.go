package vdbench_test

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/load/vdbench"
	"github.com/braggdev/bragg/internal/testreq"
)

// lines are the places and codes of errors.
func lines(list diag.List) (all []string) {
	for _, d := range list {
		if d.Severity == diag.SeverityError {
			all = append(all, fmt.Sprintf("%d %s", d.Pos.Line, d.Code))
		}
	}
	return all
}

// Public parameter files are read by themselves, with the lines that the native engine refuses.
func TestCheckCorpus(t *testing.T) {
	wanted := map[string][]string{ // lines of errors
		"100-Reads.vdb":       {"16 not-translated"}, // a second host
		"7015RW-105GaSa.vdb":  nil,
		"multi_host":          {"33 not-translated"}, // a second host
		"random_write_curve":  {"31 not-translated"}, // a device without o_direct
		"run_32K_70R_lin.vdb": {"1 not-translated"},  // duplicates of another unit
	}
	variables := map[string]string{"host1": "a.example", "host2": "b.example", "anchor1": "/mnt/a", "anchor2": "/mnt/b", "vdbench_path": "/opt/vdbench"}
	seen := map[string]bool{}
	err := filepath.WalkDir(testreq.Corpus(t, "vdbench"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "SOURCES" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		set := maps.Clone(variables)
		maps.DeleteFunc(set, func(name, _ string) bool { return !strings.Contains(string(text), "$"+name) })
		c := vdbench.Check(d.Name(), string(text), set)
		if want, known := wanted[d.Name()]; !known || !slices.Equal(lines(c.Issues), want) || (len(c.Runs) > 0) != (want == nil) {
			t.Errorf("%s: runs %q and errors %q, want %q", d.Name(), c.Runs, lines(c.Issues), want)
		}
		seen[d.Name()] = true
		return nil
	})
	if err != nil || len(seen) != len(wanted) {
		t.Fatalf("%v: %d of %d files", err, len(seen), len(wanted))
	}
}

func TestCheckWithoutVM(t *testing.T) {
	for _, c := range []struct {
		text   string
		set    map[string]string
		runs   int
		errors []string
	}{
		{"sd=sd1,lun=/dev/nvme0n1,openflags=o_direct,range=(10,20)\nwd=wd1,sd=sd1\nrd=rd1,wd=wd1,iorate=curve,curve=(20,50),elapsed=60\n", nil, 3, nil},
		{"sd=sd1,lun=/mnt/file,size=4t\nwd=wd1,sd=sd1\nrd=rd1,wd=wd1,iorate=(10,20),forthreads=(1,2),elapsed=60\n", nil, 4, nil},
		{"sd=sd1,lun=$d,openflags=o_direct\nwd=wd1,sd=sd1,xfersize=$d\nrd=rd1,wd=wd1,iorate=max\n", nil, 0, []string{"1 unset-variable", "2 unset-variable"}},
		{"sd=sd1,lun=/mnt/file\nwd=wd1,sd=sd1\nrd=rd1,wd=wd1,iorate=max\n", map[string]string{"d": "1"}, 0, []string{"0 unused-variable"}},
		{"sd=sd1,lun=/mnt/file\nwd=wd1,sd=sd1\n", nil, 0, []string{"0 no-run"}},
		{"sd=sd1,lun=/mnt/file\nwd=wd1,sd=sd1,rhpct=20\nrd=rd1,wd=wd1,iorate=max,startcmd=true\n", nil, 0, []string{"2 not-translated", "3 not-translated"}},
		{"sd=sd,lun=/mnt/f*,size=1g,count=(1,200)\nwd=wd1,sd=sd*\nrd=rd1,wd=wd1,iorate=max,forthreads=(1-999,1)\n", nil, 0, []string{"3 not-translated"}}, // 199,800 workloads
		{"", nil, 0, []string{"0 no-run"}},
	} {
		got := vdbench.Check("test.parm", c.text, c.set)
		if len(got.Runs) != c.runs || !slices.Equal(lines(got.Issues), c.errors) {
			t.Errorf("%q: %d runs %q, errors %q", c.text, len(got.Runs), got.Runs, lines(got.Issues))
		}
	}
}

// No text makes a check crash, and a file has runs or errors.
func FuzzCheck(f *testing.F) {
	f.Add("sd=sd1,lun=/dev/sdb,openflags=o_direct\nwd=wd1,sd=sd1,xfersize=(4k,75,8k,25)\nrd=rd1,wd=wd1,iorate=curve,curve=(10,50),elapsed=60\n", "")
	f.Add("sd=sd1,lun=$d,range=(1m,1g),align=4k\nwd=wd1,sd=sd*,seekpct=seq,rdpct=50,skew=20\nrd=rd1,wd=*,iorate=(1-5,1),forthreads=(1-64,d)\n", "/dev/sdc")
	f.Add("fsd=fsd1,anchor=/a\nfwd=fwd1,fsd=fsd1\nrd=rd1,fwd=fwd1\n", "")
	f.Add("fsd=default,depth=4,width=4,files=6500,sizes=(64k,25,1m,75),openflags=directio\nfsd=f1,anchor=$d\nfwd=w1,fsd=f*,threads=5,fileio=(random,shared),rdpct=70,skew=60\nfwd=w2,fsd=f1,operation=getattr,skew=40\nrd=r,fwd=*,fwdrate=(max,100),format=(restart,only),forthreads=(1-8,d)\n", "/m")
	f.Add("fsd=f,anchor=../../etc,depth=99999999,width=1000000000,files=1000000000,sizes=9p\nfwd=w,fsd=f,stopafter=-1,fileselect=(skewed,1),operation=copy\nrd=r,fwd=w,fwdrate=curve,loop=9\n", "")
	f.Fuzz(func(t *testing.T, text, disk string) {
		var set map[string]string
		if disk != "" {
			set = map[string]string{"d": disk}
		}
		if c := vdbench.Check("test.parm", text, set); (len(c.Runs) > 0) == c.Issues.HasErrors() {
			t.Errorf("%d runs, and %v", len(c.Runs), c.Issues)
		}
	})
}
