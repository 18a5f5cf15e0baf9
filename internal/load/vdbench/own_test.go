package vdbench_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/loadtest"
	"github.com/braggdev/bragg/internal/load/vdbench"
	"github.com/braggdev/bragg/internal/load/vdbench/own"
)

const ownText = "sd=sd1,lun=/dev/sdb,openflags=o_direct\nwd=wd1,sd=sd1,rdpct=50\nrd=rd1,wd=wd1,iorate=100,interval=5,elapsed="

// played is a load of a program that plays the role of vdbench, which is not redistributable: these tests say nothing about the real one.
func played(t testing.TB, text string) load.Workload {
	t.Helper()
	home, err := filepath.Abs("testdata/played")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(own.HomeVariable, home)
	t.Setenv("PATH", home+":"+os.Getenv("PATH"))
	w := workload(t, text)
	w.Options = map[string]string{"engine": "vdbench"}
	return w
}

func TestOwnContract(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	w := played(t, ownText+"1000\n")
	loadtest.RunAny(t, loadtest.Subject{Generator: vdbench.Generator{}, LatencyAtEnd: true, Endless: func(testing.TB) load.Workload { return w }})
}

// The rows of the flatfile are the counts, and the histogram is that of the end. The exit code decides nothing.
func TestOwnRun(t *testing.T) {
	w := played(t, ownText+"10\n")
	in, err := vdbench.Generator{}.Prepare(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	var log loadtest.Log
	if err := in.Run(t.Context(), &log); err != nil {
		t.Fatal(err)
	}
	sum := loadtest.Add(log.Intervals())
	for kind := range 2 {
		d := &sum.Directions[kind]
		if d.Operations != 500 || d.Bytes != 500*8192 || d.Service == nil || d.Service.Count() != 450 {
			t.Errorf("kind %d: %d operations, %d bytes, latencies: %t", kind, d.Operations, d.Bytes, d.Service != nil)
		}
	}
	names := ""
	for _, o := range in.(load.Teller).Outputs() {
		names += o.Name + " "
		if !o.Valid() {
			t.Errorf("output %s is not valid", o.Name)
		}
		if o.Name == "run.parm" && (!strings.Contains(o.Text, "lun="+w.Devices[0].Path) || !strings.Contains(o.Text, "interval=1\n") || strings.Contains(o.Text, "interval=5")) {
			t.Errorf("vdbench got\n%s", o.Text)
		}
	}
	if names != "vdbench.txt run.parm flatfile.html histogram.html " {
		t.Errorf("outputs %q", names)
	}
	for _, name := range []string{"silent", "bad_lun"} {
		w.Config = strings.ReplaceAll(ownText, "rd1", name) + "10\n"
		var known *diag.Error
		if err := loadtest.Drive(t.Context(), vdbench.Generator{}, w, &log); !errors.As(err, &known) || known.Code != "vdbench-failed" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A path that vdbench would read as another one is refused: it would write to that.
func TestOwnPaths(t *testing.T) {
	for _, name := range []string{"my runs", "runs,size=1g", "runs*", "$HOME", "läufe", "a\nb"} {
		w := played(t, ownText+"10\n")
		folder := filepath.Join(t.TempDir(), name)
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(folder, "sdb")
		if err := os.Rename(w.Devices[0].Path, path); err != nil {
			t.Fatal(err)
		}
		w.Devices[0].Path = path
		in, err := vdbench.Generator{}.Prepare(t.Context(), w)
		if err == nil {
			_ = in.Close()
		}
		var known *diag.Error
		if !errors.As(err, &known) || known.Code != "path-not-passed" || known.Exit != diag.ExitRefused {
			t.Errorf("%q: %v", name, err)
		}
		if left, _ := filepath.Glob(filepath.Join(strings.ReplaceAll(folder, "*", `\*`), "vdbench*", "own")); len(left) > 0 {
			t.Errorf("%q: %q is left", name, left)
		}
	}
}

// What runs commands, names files or reaches other hosts does not reach vdbench.
func TestOwnRefused(t *testing.T) {
	rest := ownText + "10"
	for text, place := range map[string]string{
		"startcmd=reboot\n" + rest:         "1",
		"include=/etc/passwd\n" + rest:     "1",
		"data_errors=reboot\n" + rest:      "1",
		"hd=h,shell=ssh,system=x\n" + rest: "1",
		rest + ",endcmd=\"reboot now\"":    "3",
		rest + ",replay=(/etc/passwd)":     "3",
		"fsd=f,anchor=/a,depth=1,width=1,files=1,sizes=1k,journal=/etc\nfwd=w,fsd=f\nrd=r,fwd=w,fwdrate=1,elapsed=1":   "1",
		"fsd=f,anchor=/a,depth=1,width=1,files=1,sizes=1k\nfwd=w,fsd=f,operation=copy\nrd=r,fwd=w,fwdrate=1,elapsed=1": "2",
		strings.Replace(rest, "/dev/sdb", "/etc/passwd", 1):                                                            "1",
		strings.ReplaceAll(rest, "sd=sd1", "sd=sd1`id`"):                                                               "1",
	} {
		w := played(t, text)
		_, err := vdbench.Generator{}.Plan(w)
		var list *diag.ListError
		if !errors.As(err, &list) || list.List[0].Code != "not-passed" || strings.Split(list.List[0].Pos.String(), ":")[1] != place {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestOwnMissing(t *testing.T) {
	for home, want := range map[string]string{t.TempDir(): "has no vdbench", "here": "not a whole path", "": "is not set"} {
		w := played(t, ownText+"10\n")
		t.Setenv(own.HomeVariable, home)
		if _, err := (vdbench.Generator{}).Prepare(t.Context(), w); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", home, err)
		}
	}
}

// Nothing of vdbench is left when its load is killed, and two loads do not use one disk.
func TestOwnAlone(t *testing.T) {
	w := played(t, ownText+"1000\n")
	in, err := vdbench.Generator{}.Prepare(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	var known *diag.Error
	if _, err := (vdbench.Generator{}).Prepare(t.Context(), w); !errors.As(err, &known) || known.Code != "disk-in-use" {
		t.Errorf("a second load: %v", err)
	}
	if err := in.Close(); err != nil {
		t.Error(err)
	}
	disk := w.Devices[0].Path
	loadtest.Orphans(t, []string{helperDisk + "=" + disk}, 2, func() { time.Sleep(100 * time.Millisecond) }, func() (users []string) {
		lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, line := range lines {
			if text, err := os.ReadFile(line); err == nil && strings.Contains(string(text), filepath.Dir(disk)+"/vdbench-sdb") {
				users = append(users, line)
			}
		}
		return users
	})
}

const helperDisk = "BRAGG_VDBENCH_TEST_DISK"

func TestMain(m *testing.M) {
	if disk := os.Getenv(helperDisk); disk != "" {
		loadtest.BeHelper(vdbench.Generator{}, load.Workload{Name: "w", ConfigName: "test.parm", Config: ownText + "1000\n", IntervalLength: 100 * time.Millisecond,
			Options: map[string]string{"engine": "vdbench"}, Devices: []load.Device{{Name: "/dev/sdb", Path: disk, SizeBytes: deviceBytes}}})
	}
	os.Exit(m.Run())
}

// Files are opened with the flags of their workload, or else of their file system.
func TestOwnFilesPlan(t *testing.T) {
	const text = "fsd=fsd1,anchor=/a,depth=2,width=2,files=10,sizes=64k,openflags=directio\nfsd=fsd2,anchor=/b,depth=1,width=1,files=10,sizes=(4k,50,12k,50)\n" +
		"fwd=a,fsd=fsd1,operation=read\nfwd=b,fsd=fsd*,operation=getattr\nfwd=c,fsd=fsd1,operation=write,openflags=fsync,threads=4\nrd=rd1,fwd=a,fwdrate=max,elapsed=10,format=yes\n"
	w := played(t, text)
	p, err := vdbench.Generator{}.Plan(w)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Jobs) != 3 || !p.Jobs[0].Direct || p.Jobs[1].Direct || p.Jobs[2].Direct || p.Jobs[0].QueueDepth != 1 || p.Jobs[2].QueueDepth != 4 {
		t.Errorf("%+v", p.Jobs)
	}
	if want := int64(40*64<<10 + 10*8<<10); len(p.Extents) != 1 || p.Extents[0].Length != want || p.Extents[0].Device != "/dev/sdb" {
		t.Errorf("%+v, want %d bytes", p.Extents, want)
	}
	if got := p.Engine.Operations; strings.Join(got, " ") != "read write getattr" {
		t.Errorf("operations %q", got)
	}
}

// vdbench has one histogram for all operations on files: it is that of a kind only if no other is requested, wherever in the file.
func TestOwnKinds(t *testing.T) {
	for text, want := range map[string]string{
		"fwd=a,fsd=f\nrd=r,fwd=a,fwdrate=9":                                                    "",
		"fwd=a,fsd=f,operation=write\nrd=r,fwd=a,fwdrate=9":                                    "",
		"fwd=a,fsd=f,operation=getattr\nrd=r,fwd=a,fwdrate=9":                                  "read write getattr",
		"fwd=a,fsd=f,rdpct=100\nrd=r,fwd=a,fwdrate=9":                                          "",
		"fwd=a,fsd=f,rdpct=50\nrd=r,fwd=a,fwdrate=9":                                           "mixed",
		"fwd=a,fsd=f,operation=write\nfwd=b,fsd=f\nrd=r,fwd=a,fwdrate=9":                       "mixed",
		"fwd=a,fsd=f\nrd=r,fwd=a,fwdrate=9,operations=(read,write)":                            "mixed",
		"fwd=a,fsd=f\nrd=r,fwd=a,fwdrate=9,foroperations=(read,getattr)":                       "read write getattr mixed",
		"fwd=a,fsd=f\nrd=r,fwd=a,fwdrate=9,forrdpct=(0,50)":                                    "mixed",
		"fwd=a,fsd=f,operation=create\nfwd=b,fsd=f,operation=delete\nrd=r,fwd=(a,b),fwdrate=9": "read write create delete mixed",
	} {
		p, err := vdbench.Generator{}.Plan(played(t, "fsd=f,anchor=/a,depth=1,width=1,files=1,sizes=64k\n"+text+",elapsed=10\n"))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got := p.Engine.Operations
		for _, n := range p.Engine.Notes {
			if n.Code == "no-latency-by-kind" {
				got = append(got, "mixed")
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// The program reaches an anchor on a block device by a path, not by a descriptor.
func TestOwnFileSystems(t *testing.T) {
	w := loadtest.OnDevices(t, played(t, "fsd=fsd1,anchor=/mnt/a,depth=1,width=1,files=2,sizes=8k\nfwd=fwd1,fsd=fsd1,operation=read\nrd=rd1,fwd=fwd1,fwdrate=100,format=yes,elapsed=5\n"))
	for _, prefill := range []bool{true, false, false} {
		w.Prefill = prefill
		if err := loadtest.Drive(t.Context(), vdbench.Generator{}, w, &loadtest.Log{}); err != nil {
			t.Errorf("prefill %t: %v", prefill, err)
		}
		loadtest.Released(t, w.Devices[0], "ext4")
	}
}
