package vdbench_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/load/vdbench"
)

const (
	disks = "sd=sd1,lun=/tmp/f1,size=100m\nsd=sd2,lun=/tmp/f2,size=100m\n"
	short = ",iorate=max,elapsed=10\n"
	trees = "fsd=f1,anchor=/tmp/a,depth=1,width=1,files=1,sizes=4k\n"
)

// spellings are parameter files with the numbers of runs that "vdbench -s" of 5.04.07 makes of them, 0 where it refuses them.
var spellings = map[string]int{
	// names with a dash, wildcards, ranges
	disks + "wd=w_20-80seq_a,sd=sd1\nwd=w_20-80seq_b,sd=sd2\nrd=rd1,wd=w_20-80seq*" + short:     1,
	disks + "wd=w-1,sd=sd1\nrd=rd1,wd=w-1" + short:                                              1,
	disks + "wd=w_2-8s1,sd=sd1\nwd=w_2-8r1,sd=sd2\nrd=rd1,wd=(\"w_2-8s*\",\"w_2-8r1\")" + short: 1,
	disks + "wd=w_2-8s1,sd=sd1\nwd=w_2-8r1,sd=sd2\nrd=rd1,wd=(w_2-8s1,w_2-8r1)" + short:         0,
	disks + "wd=w_2-8s1,sd=sd1\nwd=w_2-8r1,sd=sd2\nrd=rd1,wd=(w_2-8s*,w_2-8r*)" + short:         0,
	disks + "wd=w1,sd=(sd1-sd2)\nrd=rd1,wd=*" + short:                                           1,
	disks + "wd=w1,sd=(sd1-sd3)\nrd=rd1,wd=*" + short:                                           0,
	disks + "wd=w1,sd=(sd2-sd1)\nrd=rd1,wd=*" + short:                                           0,
	disks + "wd=w1,sd=sd1-sd2\nrd=rd1,wd=*" + short:                                             0,
	disks + "wd=w1,sd=s*d1\nrd=rd1,wd=*" + short:                                                0,
	disks + "wd=a-b,sd=sd1\nrd=rd1,wd=*-b" + short:                                              0,
	disks + "sd=sd,lun=/tmp/g,size=100m,count=(1,2)\nwd=w1,sd=sd1\nrd=rd1,wd=*" + short:         0,
	// where definitions begin and end
	"sd=sd1,lun=/tmp/f1,size=100m,\nsd=sd2,lun=/tmp/f2,size=100m,\nwd=w1,sd=sd2,\nrd=rd1,wd=w1" + short:                                                                             1,
	"data_errors=3,\nsd=sd1,lun=/tmp/f1,size=100m,sd=sd2,lun=/tmp/f2,size=100m\nwd=w1,sd=sd2,rd=rd1,wd=w1" + short:                                                                  1,
	disks + "wd=w1,sd=sd1\nrd=rd1,wd=w1,iorate=max,elapsed=10,\nrd=rd2,wd=w1,iorate=5,elapsed=10,\n":                                                                                2,
	disks + "wd=w1,xfersize=4k\nsd=sd1\nrd=rd1\nwd=w1\niorate=max\nelapsed=10\n":                                                                                                    1,
	disks + "wd=w1,sd=sd1\nsd=sd3,lun=/tmp/f3\nrd=rd1,wd=*" + short:                                                                                                                 0,
	disks + "data_errors=3\nwd=w1,sd=sd1\nrd=rd1,wd=*" + short:                                                                                                                      0,
	trees[:len(trees)-1] + ",\nfsd=f2,anchor=/tmp/b,depth=1,width=1,files=1,sizes=4k\nfwd=w1,fsd=f1,xfersize=4k,\nfwd=w2,fsd=f2,xfersize=4k\nrd=rd1,fwd=*,fwdrate=max,elapsed=10\n": 1,
	// hosts
	"hd=localhost\nsd=sd1,hd=localhost,lun=/tmp/f1,size=100m\nwd=w1,sd=sd1,hd=local*\nrd=rd1,wd=w1" + short:            1,
	"hd=default,master=no\nhd=h1,system=localhost,master=yes\n" + disks + "wd=w1,sd=sd1,host=h1\nrd=rd1,wd=w1" + short: 1,
	"hd=h1,system=localhost,bogus=1\n" + disks + "wd=w1,sd=sd1\nrd=rd1,wd=w1" + short:                                  0,
	"hd=h1,system=localhost\nsd=sd1,hd=h2,lun=/tmp/f1,size=100m\nwd=w1,sd=sd1\nrd=rd1,wd=w1" + short:                   0,
	disks + "wd=w1,sd=sd1,host=h1\nrd=rd1,wd=w1" + short:                                                               0,
	"hd=h1,system=localhost\n" + trees + "fwd=w1,fsd=f1,xfersize=4k,hd=h1\nrd=rd1,fwd=w1,fwdrate=max,elapsed=10\n":     1,
	trees + "fwd=w1,fsd=f1,xfersize=4k,host=local*\nrd=rd1,fwd=w1,fwdrate=max,elapsed=10\n":                            0,
	"sd=sd1,lun=/tmp/f1,lun=/tmp/f2,size=100m\nwd=w1,sd=sd1\nrd=rd1,wd=w1" + short:                                     0,
	// parameters given twice
	disks + "wd=w1,sd=sd1\nrd=rd1,wd=w1,iorate=(10,20),iorate=(30,40,50),elapsed=10\n":                    3,
	disks + "wd=w1,sd=sd1\nrd=rd1,wd=w1,iorate=10,iorate=(20,30),elapsed=10,forthreads=(1,2),threads=3\n": 2,
	disks + "wd=w1,sd=sd1\nrd=rd1,wd=w1,iorate=curve,iorate=10,elapsed=60\n":                              1,
	disks + "wd=w1,sd=sd1\nrd=rd1,wd=w1,iorate=10,iorate=curve,elapsed=60\n":                              7,
	disks + "wd=w1,sd=nosd,sd=sd1,rdpct=20,rdpct=30\nrd=rd1,wd=w1" + short:                                1,
	disks + "wd=w1,sd=sd1,sd=nosd\nrd=rd1,wd=w1" + short:                                                  0,
	disks + "wd=w1,sd=sd1,skew=30,skew=20\nwd=w2,sd=sd2,skew=80,\nrd=rd1,wd=w*" + short:                   1,
	disks + "wd=w1,sd=sd1\nwd=w2,sd=sd2\nrd=rd1,wd=w1,wd=w2" + short:                                      0,
	// warm-ups
	disks + "wd=w1,sd=sd1\nrd=rd1,wd=w1,iorate=10,elapsed=60,warmup=7\n":             1,
	disks + "wd=w1,sd=sd1\nrd=rd1,wd=w1,iorate=10,elapsed=60,warmup=20,interval=5\n": 1,
	disks + "wd=w1,sd=sd1\nrd=rd1,wd=w1,iorate=10,elapsed=60,warmup=20,interval=6\n": 0,
	disks + "wd=w1,sd=sd1\nrd=rd1,wd=w1,iorate=10,elapsed=60,warmup=3,interval=5\n":  0,
	// rates of 0
	disks + "wd=w1,sd=sd1\nrd=rd1,wd=w1,iorate=0.,elapsed=10\n":               0,
	disks + "wd=w1,sd=sd1\nrd=rd1,wd=w1,iorate=(0,10),elapsed=10\n":           0,
	trees + "fwd=w1,fsd=f1,xfersize=4k\nrd=rd1,fwd=w1,fwdrate=0,elapsed=10\n": 0,
}

// A file is accepted if vdbench accepts it, and has as many runs.
func TestSpellings(t *testing.T) {
	for text, want := range spellings {
		if c := vdbench.Check("test.parm", text, nil); len(c.Runs) != want || (want == 0) != c.Issues.HasErrors() {
			t.Errorf("%s: %d runs, want %d: %v", text, len(c.Runs), want, c.Issues)
		}
	}
}

// The real program does the same.
func TestSoakSpellings(t *testing.T) {
	program := installed(t)
	for text, want := range spellings {
		folder := t.TempDir()
		file := filepath.Join(folder, "test.parm")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		said, err := exec.Command(program, "-s", "-f", file, "-o", filepath.Join(folder, "output")).CombinedOutput()
		runs := len(simulated.FindAllString(string(said), -1))
		if completed := strings.Contains(string(said), "Vdbench simulation completed successfully"); completed != (want > 0) || completed && runs != want {
			t.Errorf("%s: %d runs, want %d: %v", text, runs, want, fmt.Sprint(err, string(said)))
		}
	}
}
