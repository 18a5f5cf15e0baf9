package iojob_test

import (
	"testing"
	"time"
)

// Clones of a group are several loads here, and leave their ramp together all the same. Nothing before it counts: neither
// operations nor time nor the rates of its periods.
func TestRampBySizeOfAGroup(t *testing.T) {
	t.Parallel()
	report := run(t, t.TempDir(), `[global]
ioengine=null
rw=randread
bs=4k
size=1g
time_based
runtime=1200ms
ramp_size=2000k
[grouped]
numjobs=2
group_reporting
rate_iops=500
[apart]
new_group
group_reporting=0
rate_iops=400
[without]
ramp_size=0
rate_iops=400
`)
	want := []struct {
		name       string
		operations uint64
		ramp       time.Duration // 500 operations
	}{{"grouped", 1200, 500 * time.Millisecond}, {"apart", 480, 1250 * time.Millisecond}, {"without", 480, 0}}
	if len(report.Rows) != len(want) {
		t.Fatalf("%d rows, want %d", len(report.Rows), len(want))
	}
	for i, row := range report.Rows {
		w := want[i]
		if row.Err != nil || row.Name != w.name || row.Due < w.operations*9/10 || row.Due > w.operations*11/10 {
			t.Errorf("row %d: %s, %v, %d operations due, want %d of %s", i, row.Name, row.Err, row.Due, w.operations, w.name)
		}
		if least := row.Directions[0].IOPS.Min; least == 0 && row.Stalled == 0 && row.BacklogMax < 100 {
			t.Errorf("%s: some period of the ramp counts: least IOPS %v", w.name, least)
		}
		begun := time.Duration(row.StartNanos - report.Rows[2].StartNanos) // jobs do not start at one moment
		if begun < w.ramp-w.ramp/5 || row.Runtime < 1100*time.Millisecond {
			t.Errorf("%s counts from %s after the job without a ramp, for %s", w.name, begun, row.Runtime)
		}
	}
}
