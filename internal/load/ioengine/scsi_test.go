package ioengine_test

import (
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/load/ioengine"
)

// What SCSI commands do not know is refused by its name before anything is opened, and a file takes none of them.
func TestSCSIRefusals(t *testing.T) {
	for options, lacks := range map[string]string{
		"sync=sync": "sync=sync with ioengine=sg", "nowait=1": "nowait=1", "uncached=1": "uncached=1", "atomic=1 direct=1": "atomic=1",
		"write_hint=short": "write_hint=short", "sync_file_range=write:4": "sync_file_range",
		"sg_write_mode=write_same verify=md5": "sg_write_mode=write_same and verify", "sg_write_mode=write_stream": "write_stream",
	} {
		_, err := ioengine.New().Plan(job("ioengine=sg rw=write bs=4k size=1m " + options))
		if err == nil || !strings.Contains(err.Error(), lacks) {
			t.Errorf("%s: %v, want %q", options, err, lacks)
		}
	}
	plan, err := ioengine.New().Plan(job("ioengine=sg rw=randwrite bs=4k size=1m iodepth=4 sg_write_mode=verify readfua=1 writefua=1"))
	if err != nil || len(plan.Jobs) != 1 || plan.Jobs[0].QueueDepth != 4 {
		t.Errorf("a job that is fine: %+v, %v", plan.Jobs, err)
	}
	_, err = ioengine.New().Prepare(t.Context(), files(t, job("ioengine=sg rw=read bs=4k size=1m")))
	if err == nil || !strings.Contains(err.Error(), "no SCSI disk") && !strings.Contains(err.Error(), "not on this system") {
		t.Errorf("a file: %v", err)
	}
}
