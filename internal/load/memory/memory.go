// Package memory is what benchmarks of memory need of the machine: its caches, the CPUs that a load may use, and memory outside of
// Go's heap. It measures nothing.
//
//	Caches ──▶ sizes of data that fit, and that do not
//	CPUs ──Pin──▶ a thread that stays where the memory is that it touched first
//	Map ──▶ Region, of normal or huge pages
package memory

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/unit"
)

// Line is the size of a cache line on nearly all processors; a stride of it touches every line once.
const Line = 64

// Cache is one cache for data of one CPU.
type Cache struct {
	Level  int
	Bytes  int64
	Shared string // CPUs that share it, as sysfs lists them
}

// systemFolder has the CPUs of the machine.
const systemFolder = "/sys/devices/system/cpu"

// Caches returns the data caches of some CPUs, each once, sorted by level. Virtual machines often show none, or those of
// another processor.
func Caches(cpus []int) []Cache { return cachesIn(systemFolder, cpus) }

func cachesIn(folder string, cpus []int) (list []Cache) {
	for _, cpu := range cpus {
		found, _ := filepath.Glob(filepath.Join(folder, "cpu"+strconv.Itoa(cpu), "cache", "index*"))
		for _, f := range found {
			c, ok := readCache(f)
			if ok && !slices.Contains(list, c) {
				list = append(list, c)
			}
		}
	}
	slices.SortStableFunc(list, func(a, b Cache) int { return a.Level - b.Level })
	return list
}

func readCache(folder string) (c Cache, ok bool) {
	text := func(name string) string {
		data, _ := os.ReadFile(filepath.Join(folder, name))
		return strings.TrimSpace(string(data))
	}
	if kind := text("type"); kind != "Data" && kind != "Unified" {
		return c, false
	}
	level, levelErr := strconv.Atoi(text("level"))
	size, unitIsK := strings.CutSuffix(text("size"), "K")
	kib, sizeErr := strconv.ParseInt(size, 10, 64)
	if levelErr != nil || sizeErr != nil || !unitIsK || level < 1 || kib < 1 || kib > 1<<32 {
		return c, false
	}
	return Cache{Level: level, Bytes: kib * unit.KiB, Shared: text("shared_cpu_list")}, true
}

// Cores counts the physical cores of some CPUs: hyperthreads of one core are one. Where the system does not say, each CPU is one.
func Cores(cpus []int) int { return coresIn(systemFolder, cpus) }

func coresIn(folder string, cpus []int) int {
	cores := map[string]bool{}
	for _, cpu := range cpus {
		name := "cpu" + strconv.Itoa(cpu)
		siblings, err := os.ReadFile(filepath.Join(folder, name, "topology", "thread_siblings_list"))
		if err != nil {
			siblings = []byte(name)
		}
		cores[string(siblings)] = true
	}
	return max(1, len(cores))
}

// LastLevel is the size of all caches of the highest level together, 0 if it is not known.
func LastLevel(caches []Cache) (sum int64) {
	for _, c := range caches {
		if c.Level == caches[len(caches)-1].Level {
			sum += c.Bytes
		}
	}
	return sum
}

// Available is the memory that can be allocated without swapping, 0 if it is not known.
func Available() int64 {
	data, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "MemAvailable:"); ok {
			kib, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kib * unit.KiB
		}
	}
	return 0
}

// shareMax is the share of the available memory that a benchmark may take.
const shareMax = 0.9

// Check refuses to allocate more than the machine has: the kernel would kill the agent.
func Check(bytes int64, hint string) error {
	if there := Available(); there > 0 && float64(bytes) > shareMax*float64(there) {
		return &diag.Error{Code: "memory-short", Exit: diag.ExitUnavailable, Hint: hint,
			Message: fmt.Sprintf("%s of memory are needed and %s are available", unit.FormatBytes(bytes), unit.FormatBytes(there))}
	}
	return nil
}
