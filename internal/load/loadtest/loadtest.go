// Package loadtest is the contract of load.Generator as tests: RunAny tests the contract of all generators, Run also that
// of generators for fio job files.
//
//	func TestContract(t *testing.T) { loadtest.Run(t, ioengine.New(), nil) }
//
// It is a black-box test: it checks the intervals, the contents of the files afterwards, and leaks of goroutines and
// descriptors.
package loadtest

import (
	"bytes"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
)

// DeviceBytes is the size of each device of a Workload made here.
const DeviceBytes = 16 << 20

// Change adapts a workload to the generator under test; nil changes nothing.
type Change func(w *load.Workload)

// Run checks the contract of g, which runs job files.
func Run(t *testing.T, g load.Generator, change Change) {
	s := suite{Subject: Subject{Generator: g}, change: change}
	s.Endless = func(t testing.TB) load.Workload {
		return s.workload(t, "[job]\nfilename=/dev/sdb\nrw=randwrite\nbs=4k\niodepth=4\nioengine=libaio\ndirect=1\ntime_based\n")
	}
	s.Untouched = func(t testing.TB, w load.Workload) {
		if got := changedBlocks(t, w, 0); len(got) != 0 {
			t.Errorf("%d blocks were written", len(got))
		}
	}
	RunAny(t, s.Subject)
	for _, c := range []struct {
		name string
		test func(t *testing.T, s suite)
	}{
		{"size-bound", testSizeBound},
		{"intervals", testIntervals},
		{"reads change nothing", testReads},
		{"refusals", testRefusals},
		{"repeat", testRepeat},
		{"prefill", testPrefill},
		{"scale", testScale},
		{"rate scale", testRateScale},
		{"several devices", testDevices},
		{"disk full", testDiskFull},
		{"broken device", testBrokenDevice},
		{"block devices", testBlockDevices},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, s) })
	}
}

type suite struct {
	Subject
	change Change
}

// workload returns a workload on two devices, /dev/sdb and /dev/sdc, which are files full of one byte each.
func (s suite) workload(t testing.TB, config string) load.Workload {
	t.Helper()
	w := load.Workload{
		Name: "contract", Group: "group", VM: "group-0001", Instance: 3, Generator: "under-test", Seed: 42,
		ConfigName: "contract.fio", Config: config,
	}
	for i, name := range []string{"/dev/sdb", "/dev/sdc"} {
		path := filepath.Join(t.TempDir(), filepath.Base(name))
		if err := os.WriteFile(path, bytes.Repeat([]byte{fill(i)}, DeviceBytes), 0o600); err != nil {
			t.Fatal(err)
		}
		w.Devices = append(w.Devices, load.Device{Name: name, Path: path, SizeBytes: DeviceBytes})
	}
	return s.changed(w)
}

func (s suite) changed(w load.Workload) load.Workload {
	if s.change != nil {
		s.change(&w)
	}
	return w
}

func fill(device int) byte { return byte(0xA0 + device) }

// hangGuard ends a test that would wait forever; no test measures it.
const hangGuard = time.Minute

// mustRun runs a workload that must succeed; it checks the properties that the intervals of every workload have.
func (s suite) mustRun(t testing.TB, w load.Workload) Sum {
	t.Helper()
	all, err := s.run(t, t.Context(), w)
	if err != nil {
		t.Fatalf("run: %v", err)
	}
	CheckIntervals(t, w, all)
	return Add(all)
}

// Log is a Sink that keeps all intervals.
type Log struct {
	mu  sync.Mutex
	all []interval.Interval
}

// Interval keeps iv.
func (l *Log) Interval(iv interval.Interval) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, iv)
}

// Intervals returns all intervals so far.
func (l *Log) Intervals() []interval.Interval {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]interval.Interval(nil), l.all...)
}

// Sum is the sum of all intervals of a workload.
type Sum struct {
	interval.Interval
	Count int
}

// Add adds up intervals: counts, bytes, errors, histograms, due operations and length.
func Add(all []interval.Interval) Sum {
	var s Sum
	for i := range all {
		iv := &all[i]
		for d := range iv.Directions {
			s.Directions[d].Add(&iv.Directions[d])
		}
		s.Due += iv.Due
		s.NotIssued += iv.NeverIssued()
		s.StalledNanos += iv.StalledNanos
		s.CPUNanos += iv.CPUNanos
		s.LengthNanos += iv.LengthNanos
		s.Count++
	}
	return s
}

// CheckIntervals checks the intervals of one workload against the contract, for every kind of load.
func CheckIntervals(t testing.TB, w load.Workload, all []interval.Interval) {
	t.Helper()
	CheckOrder(t, w, all)
	for i := range all {
		checkTraffic(t, i, &all[i])
	}
}

// CheckOrder checks that intervals follow each other, carry their workload, and end once.
func CheckOrder(t testing.TB, w load.Workload, all []interval.Interval) {
	t.Helper()
	if len(all) == 0 {
		t.Fatal("no interval was delivered")
	}
	for i := range all {
		iv := &all[i]
		if iv.Sequence != int64(i) {
			t.Errorf("interval %d has sequence %d", i, iv.Sequence)
		}
		if iv.Workload != w.Name || iv.Group != w.Group || iv.VM != w.VM || iv.Instance != w.Instance || iv.Prefill != w.Prefill {
			t.Errorf("interval %d does not carry its workload: %+v", i, iv)
		}
		if iv.Final != (i == len(all)-1) {
			t.Errorf("interval %d of %d: final is %v", i, len(all), iv.Final)
		}
		if iv.LengthNanos < 0 || i > 0 && iv.StartNanos != all[i-1].EndNanos() {
			t.Errorf("interval %d starts at %d and is %d long, after one that ended at %d", i, iv.StartNanos, iv.LengthNanos,
				all[max(0, i-1)].EndNanos())
		}
	}
}

func checkTraffic(t testing.TB, i int, iv *interval.Interval) {
	t.Helper()
	var devices [interval.OperationsMax]interval.DeviceCount
	for _, d := range iv.Devices {
		for k := range d {
			devices[k].Operations += d[k].Operations
			devices[k].Bytes += d[k].Bytes
		}
	}
	for d := range iv.Directions {
		traffic := &iv.Directions[d]
		var recorded uint64
		if traffic.Service != nil {
			recorded = traffic.Service.Count()
		}
		if recorded != traffic.Operations {
			t.Errorf("interval %d, operation %d: %d operations and %d service times", i, d, traffic.Operations, recorded)
		}
		if r := traffic.Response; r != nil && r.Count() != traffic.Operations {
			t.Errorf("interval %d, operation %d: %d operations and %d response times", i, d, traffic.Operations, r.Count())
		}
		if iv.Devices != nil && (devices[d].Operations != traffic.Operations || devices[d].Bytes != traffic.Bytes) {
			t.Errorf("interval %d, operation %d: devices do not add up: %+v", i, d, iv.Devices)
		}
	}
}

// NothingLeft returns a check to call after the load: there are no new goroutines and descriptors.
func NothingLeft(t testing.TB) func() {
	t.Helper()
	ignore := goleak.IgnoreCurrent()
	before := descriptors()
	return func() {
		t.Helper()
		if err := goleak.Find(ignore); err != nil {
			t.Errorf("goroutines are left: %v", err)
		}
		for fd, name := range descriptors() {
			if before[fd] != name {
				t.Errorf("descriptor %s is left open: %s", fd, name)
			}
		}
	}
}

// descriptors lists open file descriptors, if the system shows them.
func descriptors() map[string]string {
	open := map[string]string{}
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return open
	}
	for _, e := range entries {
		// The descriptor of this listing itself is closed by now.
		if name, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil {
			open[e.Name()] = name
		}
	}
	return open
}
