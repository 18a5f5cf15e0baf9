package ioengine

import (
	"fmt"
	"testing"

	"github.com/braggdev/bragg/internal/fio/fiojob"
)

// BenchmarkContent makes what writes of 4 KiB hold.
func BenchmarkContent(b *testing.B) {
	block := sizes{smallest: 4096, largest: 4096}
	for _, c := range []fiojob.Content{
		{}, {CompressPercent: 50, CompressChunkBytes: 512}, {CompressPercent: 50}, {DedupePercent: 30}, {DedupePercent: 99},
		{CompressPercent: 50, CompressChunkBytes: 512, DedupePercent: 30}, {Pattern: []byte("bragg")},
	} {
		shape := contentOf(&fiojob.Job{Content: c}, &block)
		b.Run(fmt.Sprintf("compress=%d,%d/dedupe=%d/pattern=%d", c.CompressPercent, c.CompressChunkBytes, c.DedupePercent, len(c.Pattern)), func(b *testing.B) {
			buffer, pool := make([]byte, 4096), contentPool()
			b.SetBytes(int64(len(buffer)))
			b.ReportAllocs()
			for n := uint64(0); b.Loop(); n++ {
				shape.write(buffer, pool, 42, n)
			}
		})
	}
}

// BenchmarkHotspots draws places.
func BenchmarkHotspots(b *testing.B) {
	const blocks = 1 << 22
	zones, _ := newZones(&fiojob.Distribution{Kind: "zoned", Zones: [3][]fiojob.DistributionZone{{
		{AccessPercent: 60, SizePercent: 10}, {AccessPercent: 40, SizePercent: 90},
	}}}, 0, blocks, 4096, blocks*4096)
	for name, h := range map[string]hotspots{
		"zipf": newZipf(1.2, blocks, 1), "pareto": newPareto(0.2, blocks, 1), "normal": newNormal(10, blocks, 1), "zoned": zones,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for n := uint64(0); b.Loop(); n++ {
				h.draw(42, n)
			}
		})
	}
}
