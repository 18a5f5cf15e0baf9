package commitlatency

import (
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load/program"
)

// Waits passes operations to a recorder as a load does, to its end.
func Waits(out *program.Recorder, done []program.Operation) {
	w := newWaiting(operations, interval.GaugeValues{})
	for _, o := range done {
		w.add(out, o)
		out.Add(o)
	}
	w.end(out)
}

// Kinds are the operations of a load, by the number of an operation.
func Kinds() []string { return operations }
