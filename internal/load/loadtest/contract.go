package loadtest

import (
	"bytes"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/extent"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
)

const blockBytes = 4096

// changedBlocks returns the numbers of the 4 KiB blocks of device i that are not as they were made.
func changedBlocks(t testing.TB, w load.Workload, i int) []int {
	t.Helper()
	content, err := os.ReadFile(w.Devices[i].Path)
	if err != nil {
		t.Fatal(err)
	}
	if len(content) != DeviceBytes {
		t.Errorf("device %q has %d bytes now", w.Devices[i].Name, len(content))
	}
	before := bytes.Repeat([]byte{fill(i)}, blockBytes)
	var changed []int
	for b := 0; (b+1)*blockBytes <= len(content); b++ {
		if !bytes.Equal(content[b*blockBytes:(b+1)*blockBytes], before) {
			changed = append(changed, b)
		}
	}
	return changed
}

// count returns a slice of n numbers from first on.
func count(first, n int) []int {
	numbers := make([]int, n)
	for i := range numbers {
		numbers[i] = first + i
	}
	return numbers
}

// A job without a runtime processes exactly its size, touches only its extent, and the plan predicts both.
func testSizeBound(t *testing.T, s suite) {
	w := s.workload(t, `[job]
filename=/dev/sdb
rw=write
bs=64k
offset=1m
size=4m
iodepth=4
ioengine=libaio
direct=1
`)
	plan, err := s.Generator.Plan(w)
	if err != nil {
		t.Fatal(err)
	}
	want := extent.Extent{Device: "/dev/sdb", Offset: 1 << 20, Length: 4 << 20, Writes: true}
	if len(plan.Extents) != 1 || plan.Extents[0] != want || plan.BytesWritten != 4<<20 || plan.BlockBytesMax != 64<<10 {
		t.Errorf("plan: extents %+v, %d bytes written, blocks of %d", plan.Extents, plan.BytesWritten, plan.BlockBytesMax)
	}
	if plan.Engine.IsZero() || plan.Command == "" || len(plan.Jobs) != 1 {
		t.Errorf("plan lacks its engine, command or jobs: %+v", plan)
	}
	sum := s.mustRun(t, w)
	writes := &sum.Directions[interval.Write]
	if writes.Operations != 64 || writes.Bytes != 4<<20 || sum.Directions[interval.Read].Operations != 0 {
		t.Errorf("%d operations, %d bytes; want 64 and 4 MiB", writes.Operations, writes.Bytes)
	}
	if got := changedBlocks(t, w, 0); !slices.Equal(got, count(256, 1024)) {
		t.Errorf("%d blocks were written, from %v on", len(got), got[:min(3, len(got))])
	}
	if got := changedBlocks(t, w, 1); len(got) != 0 {
		t.Errorf("%d blocks of a device that the job does not name were written", len(got))
	}
}

// A job that is bound by its runtime delivers an interval for every period, with and without traffic.
func testIntervals(t *testing.T, s suite) {
	w := s.workload(t, `[job]
filename=/dev/sdb
rw=randread
bs=4k
ioengine=libaio
direct=1
time_based
startdelay=300ms
`)
	w.Runtime = time.Second
	w.IntervalLength = 200 * time.Millisecond
	w.ZeroUnixNanos = time.Now().Add(-time.Hour).UnixNano()
	all, err := s.run(t, t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	CheckIntervals(t, w, all)
	sum := Add(all)
	if all[0].StartNanos < int64(time.Hour) {
		t.Errorf("first interval at %v of the run's time axis, want after 1 h", time.Duration(all[0].StartNanos))
	}
	// 1.3 s in periods of 0.2 s; the pieces at both ends may be joined to their neighbors.
	if sum.LengthNanos < int64(w.Runtime) || len(all) < 4 {
		t.Errorf("%d intervals cover %v", len(all), time.Duration(sum.LengthNanos))
	}
	if sum.Directions[interval.Read].Operations == 0 {
		t.Error("nothing was read")
	}
	if sum.Directions[interval.Read].Operations*4096 != sum.Directions[interval.Read].Bytes {
		t.Errorf("%d operations of 4 KiB moved %d bytes", sum.Directions[interval.Read].Operations, sum.Directions[interval.Read].Bytes)
	}
}

func testReads(t *testing.T, s suite) {
	w := s.workload(t, "[job]\nfilename=/dev/sdb\nrw=randread\nbs=16k\nioengine=libaio\niodepth=8\ndirect=1\n")
	sum := s.mustRun(t, w)
	if n := sum.Directions[interval.Read].Operations; n != DeviceBytes/(16<<10) {
		t.Errorf("%d reads of 16 KiB, want %d", n, DeviceBytes/(16<<10))
	}
	if got := changedBlocks(t, w, 0); len(got) != 0 {
		t.Errorf("%d blocks were changed by reading", len(got))
	}
}
