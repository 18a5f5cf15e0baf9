//go:build linux

package stream

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/loadtest"
	"github.com/braggdev/bragg/internal/load/program"
)

func workload(testing.TB) load.Workload {
	return load.Workload{Name: "contract", Group: "group", VM: "group-0001", Instance: 3, Generator: Name, Seed: 42,
		Options: map[string]string{"array": "1MiB", "repetitions": "3"}}
}

func TestContract(t *testing.T) {
	loadtest.RunAny(t, loadtest.Subject{Generator: Generator{}, Endless: workload})
}

// One round counts every byte as STREAM does, and its rates are those of its operations.
func TestOneRound(t *testing.T) {
	w := workload(t)
	w.Options["repetitions"], w.Options["threads"] = "5", "1"
	in, err := Generator{}.Prepare(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	var log loadtest.Log
	if err := in.Run(t.Context(), &log); err != nil {
		t.Fatal(err)
	}
	sum := loadtest.Add(log.Intervals())
	for k, want := range [...]uint64{16, 16, 24, 24} {
		if got := sum.Directions[k]; got.Operations != 5 || got.Bytes != 5*want*(1<<20)/8 {
			t.Errorf("%s: %d operations, %d bytes", kernels[k].name, got.Operations, got.Bytes)
		}
	}
	last := log.Intervals()[len(log.Intervals())-1]
	for k, rate := range last.Gauges {
		fastest := float64(sum.Directions[k].Bytes) / 5 / (float64(sum.Directions[k].Service.Min()) / 1e9) / 1e6
		if !(rate > 0) || rate > fastest*1.01 {
			t.Errorf("%s: %g MB/s, and the fastest pass has %g", kernels[k].name, rate, fastest)
		}
	}
	text := in.(load.Teller).Outputs()[0].Text
	if !strings.Contains(text, "STREAM-like: arrays of 1 MiB are less than 4 times") && !strings.Contains(text, "cache is not known") || !strings.Contains(text, "triad") {
		t.Errorf("output:\n%s", text)
	}
	if e := in.(load.Describer).Engine(); e.Backends[0] != "STREAM-like" || len(e.Notes) != 1 {
		t.Errorf("engine %s", e)
	} else if small := strings.Contains(text, "less than 4 times"); small != (e.Notes[0].Code == interval.NoteInCaches) {
		t.Errorf("arrays below the caches (%t) have the note %q", small, e.Notes[0].Code)
	}
}

// Arrays are not a power of two apart, of the sizes too whose regions are.
func TestStagger(t *testing.T) {
	for _, size := range []int64{1 << 20, 2 << 20, 14 << 20, 16 << 20} {
		b, err := newBench(t.Context(), &config{arrayBytes: size, repetitions: 2})
		if err != nil {
			t.Fatal(err)
		}
		for i, list := range [][]float64{b.a, b.b, b.c} {
			if at := uintptr(unsafe.Pointer(&list[0])) % (2 << 20); at != uintptr(i)*uintptr(staggerBytes) || int64(len(list))*8 != size {
				t.Errorf("array %d of %d bytes begins %d bytes after a multiple of 2 MiB and has %d elements", i, size, at, len(list))
			}
		}
		if err := b.close(); err != nil {
			t.Error(err)
		}
	}
}

// A single wrong element of any array is found, and so is work that was left out.
func TestCheck(t *testing.T) {
	b, err := newBench(t.Context(), &config{arrayBytes: 1 << 20, repetitions: 4})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.close() }()
	repeat := func() {
		for range 4 {
			for k := range kernels {
				b.pass(k)
			}
		}
	}
	for _, c := range []struct {
		name  string
		spoil func()
		fails bool
	}{
		{"nothing", func() {}, false},
		{"a", func() { b.a[len(b.a)-1] *= 1 + 1e-6 }, true},
		{"b", func() { b.b[0] = 0 }, true},
		{"c", func() { b.c[5] = math.NaN() }, true},
		{"infinity", func() { b.c[5] = math.Inf(1) }, true},
		{"elided copy", func() { clear(b.c) }, true},
	} {
		b.reset()
		repeat()
		c.spoil()
		if err := b.check(4); (err != nil) != c.fails {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	b.reset()
	repeat()
	if b.check(3) == nil {
		t.Error("a repetition too many was not found")
	}
}

func TestExpected(t *testing.T) {
	// Each repetition multiplies a by 15: c = a, b = 3a, c = 4a, a = 3a + 12a.
	for n := range repetitionsMax + 1 {
		a, b, c := expected(n)
		if want := 2 * math.Pow(15, float64(n)); math.Abs(a-want) > 1e-12*want || math.IsInf(a+b+c, 0) {
			t.Errorf("after %d repetitions: %g, %g, %g", n, a, b, c)
		}
	}
}

func TestWrongResultsFail(t *testing.T) {
	in, err := Generator{}.Prepare(t.Context(), workload(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	was := passes[3]
	passes[3] = func(a, b, c []float64) { was(a, b, c); a[0] += 1 }
	defer func() { passes[3] = was }()
	var user *diag.Error
	if err := in.Run(t.Context(), &loadtest.Log{}); !errors.As(err, &user) || user.Code != "results-differ" {
		t.Errorf("%v", err)
	}
}

func TestOptions(t *testing.T) {
	for option, value := range map[string]string{"array": "1KiB", "repetitions": "1", "threads": "none", "huge_pages": "maybe", "bs": "4k"} {
		w := workload(t)
		w.Options = map[string]string{option: value}
		if _, err := (Generator{}).Plan(w); err == nil || !strings.Contains(err.Error(), option) {
			t.Errorf("%s=%s: %v", option, value, err)
		}
	}
	w := workload(t)
	w.Options = map[string]string{"threads": "4096"}
	if _, err := (Generator{}).Prepare(t.Context(), w); err == nil {
		t.Error("4096 threads were started")
	}
	w.Options = nil
	w.Scale.Factor = 0.1
	if p, err := (Generator{}).Plan(w); err != nil || p.MemoryBytes != 3*rehearsalBytes {
		t.Errorf("rehearsal: %+v, %v", p, err)
	}
}

// Where the caches are known, the default size meets the rule.
func TestRules(t *testing.T) {
	b := &bench{config: &config{}, place: place{cache: 8 << 20}, a: make([]float64, 4<<20)}
	if got := b.broken(); len(got) != 0 {
		t.Errorf("%v", got)
	}
	b.place.cache++
	if got := b.broken(); len(got) != 1 {
		t.Errorf("%v", got)
	}
	b.place.cache = 0
	if got := b.broken(); len(got) != 1 {
		t.Errorf("%v", got)
	}
}

func TestCancelInRound(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	in, err := Generator{}.Prepare(ctx, workload(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	r := in.(*instance)
	out := make(chan passed)
	failed := make(chan error, 1)
	go func() { failed <- r.rounds(ctx, program.NewAxis(time.Now().UnixNano()), out) }()
	<-out
	cancel()
	for {
		select {
		case <-out:
		case err := <-failed:
			if err != nil {
				t.Error(err)
			}
			return
		}
	}
}

// VMs that are processes of one machine share its CPUs, and no two of them the same ones while others are idle.
func TestVMsOfOneMachineUseDifferentCPUs(t *testing.T) {
	for _, c := range []struct{ cpus, ordinal, threads, first int }{{4, 0, 1, 0}, {4, 1, 1, 1}, {4, 3, 1, 3}, {4, 4, 1, 0}, {4, 1, 2, 2}, {4, 1, 4, 0}, {3, 1, 2, 2}, {1, 5, 1, 0}} {
		cpus := []int{8, 9, 10, 11}[:c.cpus]
		got := share(cpus, c.ordinal, c.threads)
		if sorted := slices.Sorted(slices.Values(got)); got[0] != cpus[c.first] || !slices.Equal(sorted, cpus) {
			t.Errorf("VM %d with %d threads on %v: %v", c.ordinal, c.threads, cpus, got)
		}
	}
	used := map[int]bool{}
	for ordinal := range 2 {
		in, err := (Generator{}).Prepare(t.Context(), load.Workload{Name: "w", Ordinal: ordinal, Options: map[string]string{"array": "1MiB", "threads": "1"}})
		if err != nil {
			t.Fatal(err)
		}
		b := in.(*instance).bench
		used[b.place.cpus[0]] = true
		if len(used) != min(ordinal+1, len(b.place.cpus)) {
			t.Errorf("VM %d uses a CPU of another one: %v", ordinal, used)
		}
		if err := in.Close(); err != nil {
			t.Error(err)
		}
	}
}
