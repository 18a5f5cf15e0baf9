package rehearsal

import (
	"math"
	"testing"

	"github.com/braggdev/bragg/internal/result"
)

// Names of what the hypervisor counts, as docs/formats/metrics.md has them.
const (
	meterWritten = "bragg_hypervisor_vm_disk_written_bytes_per_second"
	meterWrites  = "bragg_hypervisor_vm_disk_writes_per_second"
	meterMemory  = "bragg_hypervisor_vm_memory_resident_bytes"
)

// agreeWithin is the tolerance between two independent counts: the guest's load counts its direct writes, and the host's
// emulator the writes that it received. The guest writes nothing else, because it has no file system.
const agreeWithin = 0.03

// metered returns what the hypervisor counted of one VM.
func (rec *record) metered(name, vm string) []result.Sample {
	var list []result.Sample
	for _, s := range rec.samples {
		if s.Name == name && s.Labels["vm"] == vm {
			list = append(list, s)
		}
	}
	return list
}

// total adds averages up over the time that each is of: since the one before, the first since the VM was first seen. It returns until
// when they go.
func (rec *record) total(t *testing.T, name, vm string) (sum float64, untilNanos int64) {
	t.Helper()
	seen, list := rec.metered(meterMemory, vm), rec.metered(name, vm)
	if len(seen) == 0 || len(list) == 0 {
		t.Fatalf("the hypervisor counted no %s of %s", name, vm)
	}
	before := seen[0].AtNanos
	for _, s := range list {
		if s.Value < 0 || math.IsNaN(s.Value) {
			t.Errorf("%s of %s is %v", name, vm, s.Value)
		}
		sum += s.Value * float64(s.AtNanos-before) / 1e9
		before = s.AtNanos
	}
	return sum, before
}

// metersAgree compares the bytes that the load in a guest wrote with those that the hypervisor saw being written. Requests do not
// compare: the guest's kernel merges those of a prefill.
func metersAgree(t *testing.T, rec *record, vm string) {
	t.Helper()
	hypervisor, until := rec.total(t, meterWritten, vm)
	guest := 0.0
	for i := range rec.intervals {
		iv := &rec.intervals[i]
		if iv.VM != vm {
			continue
		}
		share := 1.0 // of an interval that goes on after the last reading
		if over := iv.EndNanos() - until; over > 0 {
			share = max(0, 1-float64(over)/float64(iv.LengthNanos))
		}
		guest += share * float64(iv.Directions[1].Bytes)
	}
	t.Logf("written by %s: %.0f bytes by the hypervisor's count, %.0f by the load's in the guest", vm, hypervisor, guest)
	if guest == 0 || math.Abs(hypervisor/guest-1) > agreeWithin {
		t.Errorf("%s: the hypervisor counted %.0f bytes written, the load in the guest %.0f", vm, hypervisor, guest)
	}
}

// unmetered wants nothing of a VM within a span of time, and something before.
func unmetered(t *testing.T, rec *record, vm string, from, to int64) {
	t.Helper()
	before := 0
	for _, name := range []string{meterMemory, meterWrites} {
		for _, s := range rec.metered(name, vm) {
			if s.AtNanos < from {
				before++
			} else if s.AtNanos < to {
				t.Errorf("at %d ns %s of %s is %v, without power", s.AtNanos, name, vm, s.Value)
			}
		}
	}
	if before == 0 {
		t.Errorf("the hypervisor never counted anything of %s", vm)
	}
}

// modest checks that no value of a VM exceeds the possible maximum, as restarted counters on another node would.
func modest(t *testing.T, rec *record, vm string, most float64) {
	t.Helper()
	list := rec.metered(meterWritten, vm)
	for _, s := range list {
		if s.Value < 0 || s.Value > most {
			t.Errorf("at %d ns %s writes %.0f bytes per second", s.AtNanos, vm, s.Value)
		}
	}
	if len(list) == 0 {
		t.Errorf("the hypervisor counted no writes of %s", vm)
	}
}
