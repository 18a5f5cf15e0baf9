package vdbench_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/braggdev/bragg/internal/load/vdbench"
)

const (
	nameStorage = "sd=default,openflags=o_direct,threads=4\nsd=sd1,lun=/dev/sdb\nsd=sd2,lun=/dev/sdc\nwd=wd1,sd=sd1,rdpct=70,xfersize=4k\nwd=wd2,sd=sd2,rdpct=0,xfersize=8k\nwd=wd3,sd=sd*,xfersize=16k\n"
	nameFiles   = "fsd=fsd1,anchor=/tmp/a,depth=2,width=2,files=10,sizes=(4k,50,8k,50)\nfsd=fsd2,anchor=/tmp/b,depth=1,width=2,files=10,sizes=64k\n" +
		"fwd=default,xfersize=4k,fileio=random,fileselect=random,threads=2\nfwd=fwd1,fsd=fsd1,operation=read\nfwd=fwd2,fsd=fsd2,operation=write\nfwd=fwd3,fsd=fsd*,rdpct=60\n"
)

// named are parameter files with the names of their runs, as "vdbench -s" of 5.04.07 printed them. That prints the first rate in place of the
// current one, and made-up rates of a curve: TestSoakNames leaves these out.
var named = []struct {
	text string
	runs []string
}{
	{nameStorage + "rd=a,wd=wd1,iorate=(400-100,d),elapsed=10,interval=1\nrd=b,wd=wd3,iorate=max,elapsed=1m,forthreads=(1-4,d)\nrd=c,wd=wd1,iorate=100k\n", []string{
		"RD=a; I/O rate: 400; elapsed=10; For loops: iorate=400", "RD=a; I/O rate: 200; elapsed=10; For loops: iorate=200", "RD=a; I/O rate: 100; elapsed=10; For loops: iorate=100",
		"RD=b; I/O rate: Uncontrolled MAX; elapsed=60; For loops: threads=1", "RD=b; I/O rate: Uncontrolled MAX; elapsed=60; For loops: threads=2",
		"RD=b; I/O rate: Uncontrolled MAX; elapsed=60; For loops: threads=4", "RD=c; I/O rate: 102400; elapsed=30; For loops: None"}},
	{nameStorage + "rd=default,elapsed=20,interval=2,warmup=4\nrd=a,wd=(wd1,wd2),iorate=250,pause=3\nrd=b,wd=wd3,iorate=curve,curve=(10-70,30)\nrd=d,wd=wd1,iorate=1000,forseekpct=(0,100),elapsed=6\n", []string{
		"RD=a; I/O rate: 250; elapsed=20 warmup=4; For loops: None", "RD=b; I/O rate: Uncontrolled curve; elapsed=20 warmup=4; For loops: None",
		"RD=b_(10%); I/O rate: 10 % of the maximum; elapsed=20 warmup=4; For loops: None", "RD=b_(40%); I/O rate: 40 % of the maximum; elapsed=20 warmup=4; For loops: None",
		"RD=b_(70%); I/O rate: 70 % of the maximum; elapsed=20 warmup=4; For loops: None",
		"RD=d; I/O rate: 1000; elapsed=6 warmup=4; For loops: seekpct=0", "RD=d; I/O rate: 1000; elapsed=6 warmup=4; For loops: seekpct=100"}},
	{nameStorage + "rd=c,wd=wd3,iorate=(100,max),elapsed=10,forxfersize=(4k-8k,d),forthreads=(1,2)\nrd=e,sd=sd1,xfersize=1m,rdpct=50,iorate=10,elapsed=5\n", []string{
		"RD=c; I/O rate: 100; elapsed=10; For loops: xfersize=4k threads=1 iorate=100", "RD=c; I/O rate: Uncontrolled MAX; elapsed=10; For loops: xfersize=4k threads=1 iorate=max",
		"RD=c; I/O rate: 100; elapsed=10; For loops: xfersize=4k threads=2 iorate=100", "RD=c; I/O rate: Uncontrolled MAX; elapsed=10; For loops: xfersize=4k threads=2 iorate=max",
		"RD=c; I/O rate: 100; elapsed=10; For loops: xfersize=8k threads=1 iorate=100", "RD=c; I/O rate: Uncontrolled MAX; elapsed=10; For loops: xfersize=8k threads=1 iorate=max",
		"RD=c; I/O rate: 100; elapsed=10; For loops: xfersize=8k threads=2 iorate=100", "RD=c; I/O rate: Uncontrolled MAX; elapsed=10; For loops: xfersize=8k threads=2 iorate=max",
		"RD=e; I/O rate: 10; elapsed=5; For loops: xfersize=1m rdpct=50"}},
	{nameFiles + "rd=a,fwd=fwd1,fwdrate=(100-300,200),elapsed=10,format=yes\nrd=b,fwd=fwd*,fwdrate=max,elapsed=10,forthreads=(1,4),warmup=5\nrd=c,fwd=fwd3,fwdrate=50,elapsed=10,forxfersize=(4k,8k),forrdpct=(0,50)\n", []string{
		"RD=a; elapsed=10; fwdrate=100; For loops: fwdrate=100", "RD=a; elapsed=10; fwdrate=300; For loops: fwdrate=300",
		"RD=b; elapsed=10 warmup=5; fwdrate=max. For loops: threads=1", "RD=b; elapsed=10 warmup=5; fwdrate=max. For loops: threads=4",
		"RD=c; elapsed=10; fwdrate=50; For loops: xfersize=4k rdpct=0", "RD=c; elapsed=10; fwdrate=50; For loops: xfersize=4k rdpct=50",
		"RD=c; elapsed=10; fwdrate=50; For loops: xfersize=8k rdpct=0", "RD=c; elapsed=10; fwdrate=50; For loops: xfersize=8k rdpct=50"}},
}

// The runs of a file are those of vdbench, in its order and with its names.
func TestNames(t *testing.T) {
	for _, c := range named {
		if got := vdbench.Check("test.parm", c.text, nil); !slices.Equal(got.Runs, c.runs) {
			t.Errorf("%s:\n%q, want\n%q\n%v", c.text, got.Runs, c.runs, got.Issues)
		}
	}
}

var (
	simulated     = regexp.MustCompile(`(?m)Simulating (RD=.*)$`)
	simulatedRate = regexp.MustCompile(`I/O rate: [^;]+; (.*iorate=)|(_\(.*\); )I/O rate: [^;]+; `)
)

// The real program names them so.
func TestSoakNames(t *testing.T) {
	program := installed(t)
	for _, c := range named {
		folder := t.TempDir()
		file := filepath.Join(folder, "test.parm")
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		said, err := exec.Command(program, "-s", "-f", file, "-o", filepath.Join(folder, "output")).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, said)
		}
		var got, want []string
		for _, m := range simulated.FindAllStringSubmatch(string(said), -1) {
			if m[1] != "RD=format_for_a" {
				got = append(got, simulatedRate.ReplaceAllString(m[1], "$1$2"))
			}
		}
		for _, name := range c.runs {
			want = append(want, simulatedRate.ReplaceAllString(name, "$1$2"))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s:\n%q, want\n%q", c.text, got, want)
		}
	}
}
