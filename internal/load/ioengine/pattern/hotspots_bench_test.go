package pattern

import (
	"testing"

	"github.com/braggdev/bragg/internal/fio/fiojob/syntax"
)

// BenchmarkHotspots draws places.
func BenchmarkHotspots(b *testing.B) {
	const blocks = 1 << 22
	zones, _ := NewZones(&syntax.Distribution{Kind: "zoned", Zones: [3][]syntax.DistributionZone{{
		{AccessPercent: 60, SizePercent: 10}, {AccessPercent: 40, SizePercent: 90},
	}}}, 0, blocks, 4096, blocks*4096)
	for name, h := range map[string]Hotspots{
		"zipf": NewZipf(1.2, blocks, 1), "pareto": NewPareto(0.2, blocks, 1), "normal": NewNormal(10, blocks, 1), "zoned": zones,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for n := uint64(0); b.Loop(); n++ {
				h.draw(42, n)
			}
		})
	}
}
