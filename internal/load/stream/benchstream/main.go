// Command benchstream compares package stream with the same loops in C, compiled by gcc -O3 -fopenmp: in turns on this machine, which
// should be idle.
package main

import (
	"context"
	_ "embed"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/memory"
	"github.com/braggdev/bragg/internal/load/stream"
)

//go:embed testdata/reference.c
var reference string

func main() {
	rounds := flag.Int("rounds", 9, "rounds of both")
	flag.Parse()
	if err := run(*rounds); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

var kernels = [...]string{"copy", "scale", "add", "triad"}

type rates [len(kernels)]float64

func run(rounds int) error {
	cpus, err := memory.CPUs()
	if err != nil {
		return err
	}
	bytes := max(4*memory.LastLevel(memory.Caches(cpus)), 80<<20) / 64 * 64
	dir, err := os.MkdirTemp("", "benchstream")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "reference")
	source := program + ".c"
	if err := os.WriteFile(source, []byte(reference), 0o600); err != nil {
		return err
	}
	build := exec.Command("gcc", "-O3", "-fopenmp", "-mcmodel=large", fmt.Sprintf("-DELEMENTS=%dL", bytes/8), "-o", program, source, "-lm")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("compile with gcc: %w: %s", err, out)
	}
	fmt.Printf("%d threads, arrays of %d bytes, %d rounds in turns\n", len(cpus), bytes, rounds)
	var ours, theirs, ratios [len(kernels)][]float64
	for range rounds {
		c, err := inC(program)
		if err != nil {
			return err
		}
		own, err := inGo(bytes)
		if err != nil {
			return err
		}
		for k := range kernels {
			ours[k], theirs[k], ratios[k] = append(ours[k], own[k]), append(theirs[k], c[k]), append(ratios[k], own[k]/c[k])
		}
	}
	fmt.Printf("%-8s %12s %12s %8s %18s\n", "kernel", "C MB/s", "Bragg MB/s", "ratio", "least … most")
	for k, name := range kernels {
		fmt.Printf("%-8s %12.0f %12.0f %8.3f %9.3f … %.3f\n", name, median(theirs[k]), median(ours[k]), median(ratios[k]), slices.Min(ratios[k]), slices.Max(ratios[k]))
	}
	return nil
}

func median(list []float64) float64 {
	list = slices.Sorted(slices.Values(list))
	return list[len(list)/2]
}

func inC(program string) (r rates, err error) {
	cmd := exec.Command(program, "10")
	cmd.Env = append(os.Environ(), "OMP_PROC_BIND=true")
	out, err := cmd.Output()
	if err != nil {
		return r, fmt.Errorf("run the reference: %w", err)
	}
	for k, word := range strings.Fields(string(out)) {
		if r[k], err = strconv.ParseFloat(word, 64); err != nil {
			return r, err
		}
	}
	return r, nil
}

func inGo(bytes int64) (r rates, err error) {
	w := load.Workload{Name: "bench", Options: map[string]string{"array": strconv.FormatInt(bytes, 10)}}
	in, err := stream.Generator{}.Prepare(context.Background(), w)
	if err != nil {
		return r, err
	}
	err = in.Run(context.Background(), load.SinkFunc(func(iv interval.Interval) { copy(r[:], iv.Gauges) }))
	return r, err
}
