package vdbench_test

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/loadtest"
	"github.com/braggdev/bragg/internal/load/vdbench"
	"github.com/braggdev/bragg/internal/load/vdbench/output"
	"github.com/braggdev/bragg/internal/load/vdbench/own"
	"github.com/braggdev/bragg/internal/testreq"
)

// installed skips without the real program, which is not redistributable, and returns its path.
func installed(t *testing.T) string {
	t.Helper()
	return filepath.Join(testreq.Soak(t, own.HomeVariable, "needs an installation of vdbench"), "vdbench")
}

// drive runs a load and returns its Intervals and outputs.
func drive(t *testing.T, w load.Workload) (all []interval.Interval, outputs map[string]string) {
	t.Helper()
	in, err := vdbench.Generator{}.Prepare(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	var log loadtest.Log
	if err := in.Run(t.Context(), &log); err != nil {
		t.Fatal(err)
	}
	outputs = map[string]string{}
	for _, o := range in.(load.Teller).Outputs() {
		outputs[o.Name] = o.Text
	}
	return log.Intervals(), outputs
}

// stated are the operations of all rows of a flatfile, without those of formats.
func stated(t *testing.T, text string) (sum float64) {
	t.Helper()
	var table output.Table
	for line := range strings.Lines(text) {
		r, is, err := table.Line(strings.TrimSuffix(line, "\n"))
		if err != nil {
			t.Fatal(err)
		}
		if is && !r.Average && !strings.HasPrefix(r.Run, "format_for_") {
			sum += r.Rate
		}
	}
	return sum
}

const realText = "sd=sd1,lun=/dev/sdb,openflags=o_direct,threads=4\nwd=wd1,sd=sd1,rdpct=70,xfersize=(4k,75,8k,25)\n" +
	"rd=rd1,wd=wd1,iorate=400,elapsed=10,interval=1\n"

// The real program and the native engine do the same for one parameter file: rate, share of reads, mean size. What vdbench states is what the
// Intervals count.
func TestSoakRaw(t *testing.T) {
	installed(t)
	for _, engine := range []string{"vdbench", "native"} {
		w := workload(t, realText)
		w.Options = map[string]string{"engine": engine}
		all, outputs := drive(t, w)
		sum := loadtest.Add(all)
		reads, writes := &sum.Directions[0], &sum.Directions[1]
		n := float64(reads.Operations + writes.Operations)
		if engine == "vdbench" {
			if want := stated(t, outputs["flatfile.html"]); n != want || want == 0 {
				t.Errorf("%v operations, vdbench states %v", n, want)
			}
			if reads.Service == nil || writes.Service == nil || reads.Service.Count()+writes.Service.Count() > uint64(n) {
				t.Errorf("latencies: %v, %v", reads.Service, writes.Service)
			}
		}
		share, size := float64(reads.Operations)/n, float64(reads.Bytes+writes.Bytes)/n
		t.Logf("%s: %.0f operations in 10 s, %.3f reads, %.0f bytes each", engine, n, share, size)
		if math.Abs(n/4000-1) > 0.1 || math.Abs(share-0.7) > 0.05 || math.Abs(size/5120-1) > 0.05 {
			t.Errorf("%s: %v operations, %v reads, %v bytes each", engine, n, share, size)
		}
		busy := 0
		for _, iv := range all {
			if iv.Directions[0].Operations > 100 {
				busy++
			}
		}
		if busy < 9 {
			t.Errorf("%s: operations in %d of %d intervals", engine, busy, len(all))
		}
	}
}

// Trees of files are made and used by the real program.
func TestSoakFiles(t *testing.T) {
	installed(t)
	const text = "fsd=fsd1,anchor=/mnt/a,depth=1,width=4,files=25,sizes=64k\n" +
		"fwd=fwd1,fsd=fsd1,operation=%s,fileio=random,xfersize=8k,threads=2\nfwd=fwd2,fsd=fsd1,operation=getattr\n" +
		"rd=rd1,fwd=fwd1,fwdrate=300,elapsed=4,format=yes\n"
	for _, c := range []struct {
		change func(string) string
		kinds  int
		timed  bool
	}{
		{func(s string) string {
			return strings.Split(strings.Replace(s, "%s", "read", 1), "fwd=fwd2")[0] + s[strings.Index(s, "rd=rd1"):]
		}, 2, true},
		{func(s string) string {
			return strings.Replace(strings.Replace(s, "%s", "write", 1), "fwd=fwd1,fwdrate", "fwd=fwd*,fwdrate", 1)
		}, 3, false},
	} {
		w := workload(t, c.change(text))
		w.Options = map[string]string{"engine": "vdbench"}
		all, outputs := drive(t, w)
		sum := loadtest.Add(all)
		n, latencies := uint64(0), uint64(0)
		for kind := range c.kinds {
			n += sum.Directions[kind].Operations
			if h := sum.Directions[kind].Service; h != nil {
				latencies += h.Count()
			}
		}
		if want := stated(t, outputs["flatfile.html"]); float64(n) != want || want < 600 || (latencies > 0) != c.timed {
			t.Errorf("%s: %d operations and %d latencies, vdbench states %v operations", w.Config, n, latencies, want)
		}
		if moved := sum.Directions[0].Bytes + sum.Directions[1].Bytes; moved != 8192*(sum.Directions[0].Operations+sum.Directions[1].Operations) {
			t.Errorf("%s: %d bytes", w.Config, moved)
		}
	}
}

// On a disk that is a block device the trees are on the file system of the prefill.
func TestSoakFileSystems(t *testing.T) {
	installed(t)
	loadtest.RunFileSystems(t, vdbench.Generator{}, func(t testing.TB) load.Workload {
		w := workload(t, "fsd=fsd1,anchor=/mnt/a,depth=1,width=4,files=25,sizes=64k\nfwd=fwd1,fsd=fsd1,operation=write,fileio=random,xfersize=8k,threads=2\n"+
			"rd=rd1,fwd=fwd1,fwdrate=300,elapsed=4,format=yes\n")
		w.Options = map[string]string{"engine": "vdbench"}
		w.Runtime = 30 * time.Second
		return w
	})
}

// A block device needs consent, and its first block is not written to, nor what is behind the size of the disk.
func TestSoakDevice(t *testing.T) {
	installed(t)
	for _, c := range loadtest.DeviceCases() {
		w := c.Workload(t, "sd=sd1,lun=/dev/sdb,openflags=o_direct,threads=4\nwd=wd1,sd=sd1,rdpct=0,xfersize=64k,seekpct=eof\nrd=rd1,wd=wd1,iorate=max,elapsed=10\n")
		w.ConfigName, w.Options = "test.parm", map[string]string{"engine": "vdbench"}
		if c.Want != nil {
			in, err := vdbench.Generator{}.Prepare(t.Context(), w)
			if err == nil {
				_ = in.Close()
			}
			loadtest.CheckRefusal(t, err, c.Want)
			continue
		}
		d := &w.Devices[0]
		whole := d.SizeBytes
		d.SizeBytes -= 1 << 20
		before, err := os.ReadFile(d.Path)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = drive(t, w)
		after, err := os.ReadFile(d.Path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(before[:4096], after[:4096]) || !bytes.Equal(before[d.SizeBytes:], after[d.SizeBytes:]) || bytes.Equal(before[64<<10:d.SizeBytes], after[64<<10:d.SizeBytes]) {
			t.Errorf("%s: of %d bytes, others are written to than the load's", c.Title, whole)
		}
	}
}
