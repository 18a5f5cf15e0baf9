// Package thread gives the threads of a load their CPUs, memory nodes and priorities, and says what they used.
//
//	job ──SettingsOf──▶ Settings ──Settle──▶ the calling thread has them
//	a locked thread ──NewClock, UsageNow──▶ CPU time, waits for a CPU, faults; WithheldNow: what the machine kept back
//
// It starts no thread. Where a system has no such calls, settings are an error and what was used is unknown.
package thread

import (
	"fmt"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/fio/fiojob"
)

// Settings are what the threads of a lane run with; the zero value leaves them as they are.
type Settings struct {
	cpus      string // bits as a string, so that settings can be compared; "": all
	nodes     nodeSettings
	nice      int
	prioClass int
	prio      int
}

// SettingsOf works out those of one clone of a job.
func SettingsOf(c *fiojob.Control, clone int) Settings {
	out := Settings{nodes: nodeSettingsOf(&c.Nodes), nice: c.Nice, prioClass: c.PrioClass, prio: c.Prio}
	cpus := c.CPUs
	if len(cpus) > 0 && c.CPUsSplit {
		cpus = cpus[clone%len(cpus):][:1]
	}
	out.cpus = packed(cpus)
	return out
}

// packed makes of numbers below 65536 what can be compared.
func packed(numbers []int) string {
	set := make([]byte, 0, len(numbers)*2)
	for _, n := range numbers {
		set = append(set, byte(n), byte(n>>8))
	}
	return string(set)
}

func unpacked(set string) (numbers []int) {
	for i := 0; i+1 < len(set); i += 2 {
		numbers = append(numbers, int(set[i])|int(set[i+1])<<8)
	}
	return numbers
}

// list returns the CPUs.
func (t *Settings) list() []int { return unpacked(t.cpus) }

// Settle gives the calling thread, which is locked to its goroutine and ends with it, the settings of its lanes.
func (t *Settings) Settle() error {
	if *t == (Settings{}) {
		return nil
	}
	if err := t.apply(); err != nil {
		return &diag.Error{
			Code: "thread-settings", Exit: diag.ExitUnavailable, Err: err,
			Message: fmt.Sprintf("set CPUs %v%s, nice %d and I/O priority %d/%d of a thread", t.list(), &t.nodes, t.nice, t.prioClass, t.prio),
		}
	}
	return nil
}
