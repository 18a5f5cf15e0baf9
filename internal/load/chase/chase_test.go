//go:build linux

package chase

import (
	"context"
	"errors"
	"strings"
	"testing"
	"unsafe"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/loadtest"
)

func workload(testing.TB) load.Workload {
	return load.Workload{Name: "contract", Group: "group", VM: "group-0001", Instance: 3, Generator: Name, Seed: 42,
		Options: map[string]string{"sizes": "4KiB 64KiB"}}
}

func TestContract(t *testing.T) {
	loadtest.RunAny(t, loadtest.Subject{Generator: Generator{}, Endless: workload})
}

// All lines of a working set are one cycle, whatever the seed.
func TestCycle(t *testing.T) {
	for key := range uint64(20) {
		c, err := newCycle(t.Context(), 8<<10, false, key)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[unsafe.Pointer]bool{}
		at, straight := c.at, 0
		for range c.lines {
			seen[at] = true
			next := *(*unsafe.Pointer)(at)
			if uintptr(next) == uintptr(at)+64 {
				straight++
			}
			at = next
		}
		if at != c.at || int64(len(seen)) != c.lines || straight > 10 {
			t.Errorf("key %d: %d of %d lines, %d neighbors", key, len(seen), c.lines, straight)
		}
		if err := c.close(); err != nil {
			t.Error(err)
		}
	}
}

// A walk that leaves out accesses, or changed memory, is found.
func TestLost(t *testing.T) {
	c, err := newCycle(t.Context(), 4<<10, false, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.close() }()
	if _, err := c.pass(t.Context(), 4*c.lines); err != nil {
		t.Error(err)
	}
	*(*uintptr)(c.at) = uintptr(c.at) // a cycle of one line
	if _, err := c.pass(t.Context(), 8); !errors.Is(err, errLost) {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.pass(ctx, 8); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if _, err := newCycle(ctx, 64<<20, false, 1); err == nil {
		t.Error("a cancelled build went on")
	}
}

// Without a runtime each working set has as many passes as are kept, and a larger one is not faster.
func TestRounds(t *testing.T) {
	w := workload(t)
	w.Options["sizes"] = "8KiB, 16MiB"
	in, err := Generator{}.Prepare(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	var log loadtest.Log
	if err := in.Run(t.Context(), &log); err != nil {
		t.Fatal(err)
	}
	all := log.Intervals()
	if n := loadtest.Add(all).Directions[0].Operations; n != 2*kept {
		t.Errorf("%d passes", n)
	}
	got := all[len(all)-1].Gauges
	if !(got[0] > 0) || !(got[1] > got[0]) {
		t.Errorf("8 KiB: %.2f ns, 16 MiB: %.2f ns", got[0], got[1])
	}
	if text := in.(load.Teller).Outputs()[0].Text; !strings.Contains(text, "8 KiB") || !strings.Contains(text, "16 MiB") {
		t.Errorf("output:\n%s", text)
	}
}

func TestOptions(t *testing.T) {
	for option, value := range map[string]string{"sizes": "3KiB", "huge_pages": "maybe", "bs": "4k"} {
		w := workload(t)
		w.Options = map[string]string{option: value}
		if _, err := (Generator{}).Plan(w); err == nil || !strings.Contains(err.Error(), option) {
			t.Errorf("%s=%s: %v", option, value, err)
		}
	}
	for _, sizes := range []string{"", "8KiB 4KiB", "8KiB 8KiB", strings.Repeat("1KiB ", 17)} {
		w := workload(t)
		w.Options["sizes"] = sizes
		if _, err := (Generator{}).Plan(w); err == nil {
			t.Errorf("sizes %q were accepted", sizes)
		}
	}
	w := workload(t)
	w.Options = nil
	if p, err := (Generator{}).Plan(w); err != nil || len(p.Engine.Gauges) != 16 || p.MemoryBytes < 640<<20 {
		t.Errorf("%+v, %v", p, err)
	}
}
