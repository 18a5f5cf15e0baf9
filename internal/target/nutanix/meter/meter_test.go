package meter

import (
	"crypto/tls"
	"strings"
	"testing"
	"time"

	lab "github.com/braggdev/bragg/internal/lab/prism"
	"github.com/braggdev/bragg/internal/lab/prism/state"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/nutanix/ahv"
	"github.com/braggdev/bragg/internal/target/nutanix/prism"
)

// rig is an emulated cluster with a VM that is on, and what reads it.
type rig struct {
	*lab.Emulator
	cluster *ahv.Cluster
	meter   Meter
	hosts   []Host
	vms     []VM
}

func newRig(t *testing.T) *rig {
	t.Helper()
	e, err := lab.New(lab.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	c, err := prism.New(prism.Options{
		Endpoint: e.Address, User: e.Credentials.User, Password: e.Credentials.Password, Quicken: 100,
		TLS: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // the emulator of this test
	})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{Emulator: e}
	if r.cluster, err = ahv.Find(t.Context(), c, ""); err != nil {
		t.Fatal(err)
	}
	r.cluster.Sampling = time.Second
	task, id, err := e.State.CreateVM(state.VMSpec{Name: "OLTP-0001", MemoryBytes: 1 << 30, ClusterID: r.cluster.ID})
	if err == nil {
		err = e.State.Await(task)
	}
	if err != nil {
		t.Fatal(err)
	}
	r.vms = []VM{{Value: target.VM{ID: id, Name: "OLTP-0001", Group: "OLTP", NodeID: "1"}, RAMBytes: 1 << 30}}
	e.State.Read(func(d *state.Data) {
		for _, h := range d.Hosts {
			r.hosts = append(r.hosts, Host{NodeID: h.Name, ExtID: h.ID, CapacityHz: 1e9})
		}
	})
	return r
}

// read returns the times of the samples of one reading, by series.
func (r *rig) read(t *testing.T) map[string]time.Time {
	t.Helper()
	nodes, err := r.meter.Hosts(t.Context(), r.cluster, r.hosts)
	if err != nil {
		t.Fatal(err)
	}
	vms, err := r.meter.VMs(t.Context(), r.cluster, r.vms)
	if err != nil {
		t.Fatal(err)
	}
	times := map[string]time.Time{}
	add := func(key string, at time.Time) {
		if !times[key].IsZero() {
			t.Errorf("%s twice in a reading", key)
		}
		times[key] = at
	}
	for _, s := range nodes {
		add(s.NodeID+" "+s.Metric, s.At)
	}
	for _, s := range vms {
		add(s.VM+" "+string(s.Metric), s.At)
	}
	return times
}

// The clock of Prism is off by hours, and is set during a run: samples have the time of this program all the same, each once.
func TestClockOfPrism(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const series = 3*3 + 11 // of three hosts, whose network Prism does not count, and a VM
	last := map[string]time.Time{}
	for _, ahead := range []time.Duration{3 * time.Hour, 26*time.Hour + 300*time.Millisecond, 0, -3 * time.Hour} {
		r.State.SetClock(ahead)
		if _, err := r.cluster.Hosts(t.Context()); err != nil { // shows the new clock
			t.Fatal(err)
		}
		seen := map[string]int{}
		for len(seen) < series || seen["lab-1 CpuUsage.Avg.Percent"] < 2 {
			began := time.Now()
			for key, at := range r.read(t) {
				seen[key]++
				if at.Before(began.Add(-5*time.Second)) || at.After(time.Now()) {
					t.Fatalf("clock ahead by %v: sample of %s at %v, read at %v", ahead, key, at, began)
				}
				if seen[key] > 1 && !at.After(last[key]) {
					t.Errorf("clock ahead by %v: sample of %s at %v after that of %v", ahead, key, at, last[key])
				}
				last[key] = at
			}
			if t.Context().Err() != nil {
				t.Fatalf("clock ahead by %v: only %v", ahead, seen)
			}
		}
	}
}

// Prism's statistics of the network of hosts are not what they are said to be, so there is no metric of them. Those of VMs are right.
func TestNetworkIsThatOfVMs(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var times map[string]time.Time
	for deadline := time.Now().Add(20 * time.Second); len(times) == 0 && time.Now().Before(deadline); {
		times = r.read(t)
	}
	if times["OLTP-0001 "+string(target.VMReceived)].IsZero() {
		t.Errorf("the VM has no network: %v", times)
	}
	for key := range times {
		if strings.Contains(key, "NetReceived") || strings.Contains(key, "NetTransmitted") {
			t.Errorf("a host has %s", key)
		}
	}
}
