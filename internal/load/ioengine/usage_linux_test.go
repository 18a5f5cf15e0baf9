package ioengine_test

import (
	"testing"

	"github.com/braggdev/bragg/internal/load/ioengine"
	"github.com/braggdev/bragg/internal/load/ioengine/measuring"
	"github.com/braggdev/bragg/internal/load/loadtest"
)

// usageWatch looks at the account of a run that has not ended.
type usageWatch struct {
	account func() measuring.Account
	seen    []measuring.Account
}

func (u *usageWatch) Begin(int64)                    {}
func (u *usageWatch) Completed([]ioengine.Completed) { u.seen = append(u.seen, u.account()) }

// A worker whose operation hangs for good is given up before its end, and the report has its account as it is then: no usage
// yet, and none below zero.
func TestUsageIsNeverNegative(t *testing.T) {
	w := files(t, job("rw=randread bs=4k size=1m ioengine=psync"))
	run := prepared(t, w)
	watch := &usageWatch{account: run.Account}
	run.Observe(func(string, int) ioengine.Observer { return watch })
	var log loadtest.Log
	if err := run.Run(t.Context(), &log); err != nil {
		t.Fatal(err)
	}
	if len(watch.seen) == 0 {
		t.Fatal("nothing was observed")
	}
	for _, a := range append(watch.seen, run.Account()) {
		if a.UserNanos < 0 || a.SystemNanos < 0 || a.Switches < 0 || a.MinorFaults < 0 || a.MajorFaults < 0 {
			t.Fatalf("usage below zero: %d ns user, %d ns system, %d switches, %d and %d faults", a.UserNanos, a.SystemNanos, a.Switches, a.MinorFaults, a.MajorFaults)
		}
	}
}
