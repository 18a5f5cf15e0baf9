package content

import (
	"fmt"
	"testing"

	"github.com/braggdev/bragg/internal/fio/fiojob"
)

// BenchmarkContent makes what writes of 4 KiB hold.
func BenchmarkContent(b *testing.B) {
	for _, c := range []fiojob.Content{
		{}, {CompressPercent: 50, CompressChunkBytes: 512}, {CompressPercent: 50}, {DedupePercent: 30}, {DedupePercent: 99},
		{CompressPercent: 50, CompressChunkBytes: 512, DedupePercent: 30}, {Pattern: []byte("bragg")},
	} {
		shape := Of(&fiojob.Job{Content: c}, 4096)
		b.Run(fmt.Sprintf("compress=%d,%d/dedupe=%d/pattern=%d", c.CompressPercent, c.CompressChunkBytes, c.DedupePercent, len(c.Pattern)), func(b *testing.B) {
			buffer, pool := make([]byte, 4096), Pool()
			b.SetBytes(int64(len(buffer)))
			b.ReportAllocs()
			for n := uint64(0); b.Loop(); n++ {
				shape.Write(buffer, pool, 42, n)
			}
		})
	}
}
