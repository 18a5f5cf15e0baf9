package vsphere

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/braggdev/bragg/internal/lab/vcsim"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/targettest"
)

// reading is what one reading of the meter returned.
type reading struct {
	nodes, vms int
	at         time.Time // of all samples
}

// read reads the meter and checks that all samples have one time.
func read(t *testing.T, m target.VMMeter, tag target.Tag) reading {
	t.Helper()
	nodes, vms, err := m.SampleVMs(t.Context(), tag)
	if err != nil {
		t.Fatal(err)
	}
	got := reading{nodes: len(nodes), vms: len(vms)}
	var all []time.Time
	for _, one := range nodes {
		all = append(all, one.At)
	}
	for _, one := range vms {
		all = append(all, one.At)
	}
	for _, at := range all {
		if got.at = all[0]; at.Sub(got.at).Abs() > clockError {
			t.Errorf("samples of one reading are of %v and %v", got.at, at)
		}
	}
	return got
}

// clockError bounds how exactly the clock of the vCenter can be read here: half the time that a request takes.
const clockError = taskMax

// Samples are at the end of their interval by the clock of this program, however far that of the vCenter is off, and also when it is set during
// a run. Each interval is returned once.
func TestClockOfMeter(t *testing.T) {
	server, err := vcsim.Start(vcsim.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	r := rigOf(t, server)
	tag := targettest.NewTag("run-1")
	synctest.Test(t, func(t *testing.T) {
		const delay = 7 * time.Second
		ahead := 5*time.Hour + 13*time.Minute + 3*time.Second
		server.Count(vcsim.Counters{Clock: func() time.Time { return time.Now().Add(ahead) }, Delay: delay})
		v := r.openBy(t, &late{Server: server, one: make(chan struct{}, 1)})
		vms, err := v.Create(t.Context(), tag, lateSpecs(t, v))
		if err == nil {
			err = v.(target.VMPower).PowerOnVMs(t.Context(), tag, vms)
		}
		if err != nil {
			t.Fatal(err)
		}
		m := v.(target.VMMeter)
		for _, set := range []time.Duration{ahead, 0, -3 * time.Hour, 26 * time.Hour} {
			ahead = set
			// Just before an interval is shown.
			shown := time.Now().Add(ahead - delay).Truncate(20 * time.Second).Add(40*time.Second + delay - ahead)
			time.Sleep(time.Until(shown.Add(-8 * time.Second)))
			first := read(t, m, tag)
			if want := shown.Add(-20*time.Second - delay); first.nodes == 0 || first.vms == 0 || first.at.Sub(want).Abs() > clockError {
				t.Errorf("%v ahead: %d and %d samples of %v, want those of %v", ahead, first.nodes, first.vms, first.at, want)
			}
			time.Sleep(time.Until(shown.Add(-3 * time.Second)))
			if again := read(t, m, tag); again.nodes+again.vms > 0 {
				t.Errorf("%v ahead: an interval was returned twice: %+v", ahead, again)
			}
			time.Sleep(time.Until(shown.Add(3 * time.Second)))
			if next := read(t, m, tag); next.nodes != first.nodes || next.vms != first.vms || next.at.Sub(first.at.Add(20*time.Second)).Abs() > clockError {
				t.Errorf("%v ahead: %+v after %+v", ahead, next, first)
			}
		}
		if err := v.Delete(t.Context(), tag, vms); err != nil {
			t.Error(err)
		}
	})
}
