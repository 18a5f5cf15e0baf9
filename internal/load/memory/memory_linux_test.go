package memory_test

import (
	"testing"

	"github.com/braggdev/bragg/internal/load/memory"
	"github.com/braggdev/bragg/internal/unit"
)

// Huge pages of one region are not counted as those of its neighbor.
func TestHugePagesOfNeighbors(t *testing.T) {
	var regions [3]*memory.Region
	for i := range regions {
		r, err := memory.Map(6*unit.MiB, true)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		regions[i] = r
	}
	for i, b := 0, regions[1].Bytes(); i < len(b); i += 4096 {
		b[i] = 1
	}
	if got := regions[0].HugeBytes() + regions[2].HugeBytes(); got != 0 {
		t.Errorf("%d bytes of huge pages in regions that were never written", got)
	}
	if got := regions[1].HugeBytes(); got > 6*unit.MiB {
		t.Errorf("%d bytes of huge pages in 6 MiB", got)
	}
}
