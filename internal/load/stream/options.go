package stream

import (
	"maps"
	"slices"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/unit"
)

// config is the configuration of one workload.
type config struct {
	arrayBytes  int64 // of each array; 0: from the caches
	threads     int   // 0: one for each CPU
	repetitions int
	hugePages   bool
	scaled      bool // of a rehearsal
	ordinal     int  // of the VM in its group
}

// Defaults and bounds. With more repetitions than the maximum, the values of the kernels would leave the range of numbers.
const (
	repetitionsDefault = 10
	repetitionsLeast   = 2 // the first one does not count
	repetitionsMax     = 200
	threadsMax         = 4096
	arrayLeast         = unit.MiB
	arrayMax           = unit.TiB
	// arrayElsewhere is the size of an array where no cache is known.
	arrayElsewhere = 256 * unit.MiB
	// cacheTimes is how much larger than all last-level caches each array is.
	cacheTimes = 4
	arrays     = 3
	// rehearsalBytes is the size of an array in a rehearsal: it shows that the load works, not how fast memory is.
	rehearsalBytes = 8 * unit.MiB
)

var optionNames = []string{"array", "huge_pages", "repetitions", "threads"}

func parse(w *load.Workload) (*config, error) {
	o := &load.Options{Values: w.Options}
	c := &config{ordinal: w.Ordinal, threads: o.Integer("threads", 0, threadsMax), repetitions: o.Integer("repetitions", repetitionsDefault, repetitionsMax)}
	if c.repetitions < repetitionsLeast {
		o.Fault("repetitions", "repetitions: at least %d, because the first one does not count", repetitionsLeast)
	}
	if text, given := w.Options["array"]; given {
		size, err := unit.ParseBytes(text)
		if err != nil || size < arrayLeast || size > arrayMax {
			o.Fault("array", "array: %q is not a size from 1MiB to 1TiB", text)
		}
		c.arrayBytes = size / 64 * 64
	}
	switch text, given := w.Options["huge_pages"]; {
	case text == "try":
		c.hugePages = true
	case given && text != "system":
		o.Fault("huge_pages", "huge_pages: %q is not system or try", text)
	}
	for _, name := range slices.Sorted(maps.Keys(w.Options)) {
		if !slices.Contains(optionNames, name) {
			o.Fault(name, "no option %q", name)
		}
	}
	if f := w.Scale.Factor; f > 0 && f < 1 && c.arrayBytes == 0 {
		c.arrayBytes, c.scaled = rehearsalBytes, true
	}
	return c, o.Err(w.Name, "docs/guides/memory.md lists the options of stream")
}
