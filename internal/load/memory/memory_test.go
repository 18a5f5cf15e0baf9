//go:build linux

package memory

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestCaches(t *testing.T) {
	folder := t.TempDir()
	write := func(cpu, index, kind, level, size, shared string) {
		dir := filepath.Join(folder, cpu, "cache", index)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{"type": kind, "level": level, "size": size, "shared_cpu_list": shared} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, cpu := range []string{"0", "1", "2"} {
		write("cpu"+cpu, "index0", "Data", "1", "48K", cpu)
		write("cpu"+cpu, "index1", "Instruction", "1", "32K", cpu)
	}
	write("cpu0", "index3", "Unified", "3", "32768K", "0-1")
	write("cpu1", "index3", "Unified", "3", "32768K", "0-1")
	write("cpu2", "index3", "Unified", "3", "32768K", "2-3")
	write("cpu2", "index4", "Unified", "4", "much", "2-3")
	list := cachesIn(folder, []int{0, 1, 2})
	if len(list) != 5 || LastLevel(list) != 64<<20 {
		t.Errorf("%+v, last level %d", list, LastLevel(list))
	}
	if got := LastLevel(cachesIn(folder, []int{1})); got != 32<<20 {
		t.Errorf("last level of one CPU: %d", got)
	}
	if got := cachesIn(folder, []int{7}); len(got) != 0 || LastLevel(got) != 0 {
		t.Errorf("caches of a CPU that does not exist: %v", got)
	}
}

func TestRegion(t *testing.T) {
	cpus, err := CPUs()
	if err != nil || len(cpus) == 0 || !slices.IsSorted(cpus) {
		t.Fatal(cpus, err)
	}
	r, err := Map(4<<20, true)
	if err != nil {
		t.Fatal(err)
	}
	numbers := r.Floats()
	if len(numbers) != 4<<20/8 || len(r.Bytes()) != 4<<20 {
		t.Errorf("%d numbers, %d bytes", len(numbers), len(r.Bytes()))
	}
	for i := range numbers {
		numbers[i] = 1
	}
	if huge := r.HugeBytes(); huge%hugePage != 0 || huge > 4<<20 {
		t.Errorf("%d bytes in huge pages", huge)
	}
	if err := r.Close(); err != nil || r.Close() != nil {
		t.Error(err)
	}
	if Available() == 0 || Check(1<<60, "") == nil || Check(1, "") != nil {
		t.Errorf("available: %d", Available())
	}
}
