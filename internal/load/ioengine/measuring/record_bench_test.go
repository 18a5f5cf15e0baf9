package measuring

import (
	"testing"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load/ioengine/backend"
)

// BenchmarkComplete is what recording one operation costs once the clock was read: counters, the histogram of service
// times and, in an open loop, that of response times.
func BenchmarkComplete(b *testing.B) {
	for name, open := range map[string]bool{"closed": false, "open": true} {
		b.Run(name, func(b *testing.B) {
			directions := [interval.DirectionCount]bool{interval.Read: true}
			r := NewRecorder(directions, [interval.DirectionCount]bool{interval.Read: open}, 1)
			s := &backend.Slot{Size: 4096, Kind: backend.OpRead}
			b.ReportAllocs()
			for n := int64(0); b.Loop(); n++ {
				now := 80_000 + n%40_000
				r.Answered(now)
				r.Complete(s, now)
			}
		})
	}
}
