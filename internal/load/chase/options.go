package chase

import (
	"maps"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/unit"
)

// config is the configuration of one workload.
type config struct {
	sizes     []int64 // of the working sets, growing
	hugePages bool
}

// sizesDefault cover the caches of current processors; the last ones are memory. There are as many as a load may have gauges.
var sizesDefault = []int64{
	4 * unit.KiB, 16 * unit.KiB, 32 * unit.KiB, 64 * unit.KiB, 128 * unit.KiB, 256 * unit.KiB, 512 * unit.KiB, unit.MiB, 2 * unit.MiB,
	4 * unit.MiB, 8 * unit.MiB, 16 * unit.MiB, 32 * unit.MiB, 64 * unit.MiB, 128 * unit.MiB, 512 * unit.MiB,
}

// Bounds of a working set.
const (
	sizeLeast = unit.KiB
	sizeMost  = 64 * unit.GiB
)

var optionNames = []string{"huge_pages", "sizes"}

func parse(w *load.Workload) (*config, error) {
	o := &load.Options{Values: w.Options}
	c := &config{sizes: sizesDefault, hugePages: true}
	if text, given := w.Options["sizes"]; given {
		c.sizes = nil
		for _, word := range strings.Fields(strings.ReplaceAll(text, ",", " ")) {
			size, err := unit.ParseBytes(word)
			if err != nil || size < sizeLeast || size > sizeMost || size&(size-1) != 0 {
				o.Fault("sizes", "sizes: %q is not a power of two from 1KiB to 64GiB", word)
				continue
			}
			if len(c.sizes) > 0 && size <= c.sizes[len(c.sizes)-1] {
				o.Fault("sizes", "sizes: %q does not follow a smaller one", word)
			}
			c.sizes = append(c.sizes, size)
		}
		if len(c.sizes) == 0 || len(c.sizes) > interval.GaugesMax {
			o.Fault("sizes", "sizes: from 1 to %d working sets", interval.GaugesMax)
			c.sizes = sizesDefault
		}
	}
	switch text, given := w.Options["huge_pages"]; {
	case text == "never":
		c.hugePages = false
	case given && text != "try":
		o.Fault("huge_pages", "huge_pages: %q is not try or never", text)
	}
	for _, name := range slices.Sorted(maps.Keys(w.Options)) {
		if !slices.Contains(optionNames, name) {
			o.Fault(name, "no option %q", name)
		}
	}
	return c, o.Err(w.Name, "docs/guides/memory.md lists the options of memory_latency")
}

// memory is what all working sets need together.
func (c *config) memory() (sum int64) {
	for _, size := range c.sizes {
		sum += size
	}
	return sum
}
