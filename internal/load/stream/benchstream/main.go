// Command benchstream compares package stream with the same loops in C, compiled by gcc -O3 -fopenmp: in turns on this machine, which
// should be idle.
//
// gcc replaces the loop of copy by a call of memcpy, whose instructions are those of the C library for this processor: string moves, or stores
// around the cache from a size on. So there are two references. The one of the ratios has four loops, as package stream. The other one
// has what gcc makes without further options, for the difference of copy.
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
	rounds := flag.Int("rounds", 15, "rounds of all")
	pad := flag.Int("pad", 5632, "elements between the arrays in C; 0 shows the cost of arrays that are a power of two apart")
	flag.Parse()
	if err := run(*rounds, *pad); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

var kernels = [...]string{"copy", "scale", "add", "triad"}

type rates [len(kernels)]float64

// side is one of the programs, with its rates of all rounds.
type side struct {
	name   string
	run    func() (rates, error)
	rounds []rates
}

func run(rounds, pad int) error {
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
	defines := []string{fmt.Sprintf("-DELEMENTS=%dL", bytes/8), fmt.Sprintf("-DPAD=%d", pad)}
	loops, err := build(filepath.Join(dir, "loops"), append(defines, "-fno-tree-loop-distribute-patterns"))
	if err != nil {
		return err
	}
	plain, err := build(filepath.Join(dir, "plain"), defines)
	if err != nil {
		return err
	}
	sides := []*side{
		{name: "C loops", run: func() (rates, error) { return inC(loops) }},
		{name: "C memcpy", run: func() (rates, error) { return inC(plain) }},
		{name: "Bragg", run: func() (rates, error) { return inGo(bytes) }},
	}
	fmt.Printf("%d threads, arrays of %d bytes, %d rounds in turns\n", len(cpus), bytes, rounds)
	for n := range rounds {
		for i := range sides { // another one begins each round
			s := sides[(n+i)%len(sides)]
			r, err := s.run()
			if err != nil {
				return err
			}
			s.rounds = append(s.rounds, r)
		}
	}
	print(sides[0], sides[1], sides[2])
	return nil
}

// print has medians of the rates, and of the ratios of rounds.
func print(loops, plain, bragg *side) {
	fmt.Printf("%-8s %12s %12s %8s %18s\n", "kernel", "C MB/s", "Bragg MB/s", "ratio", "quartiles")
	for k, name := range kernels {
		row(name, loops, bragg, k)
	}
	fmt.Printf("copy in C as a call of memcpy, as gcc -O3 compiles it:\n")
	row(kernels[0], plain, bragg, 0)
}

func row(name string, reference, bragg *side, kernel int) {
	var ours, theirs, ratios []float64
	for i, r := range bragg.rounds {
		c := reference.rounds[i]
		ours, theirs, ratios = append(ours, r[kernel]), append(theirs, c[kernel]), append(ratios, r[kernel]/c[kernel])
	}
	fmt.Printf("%-8s %12.0f %12.0f %8.3f %9.3f … %.3f\n", name, quantile(theirs, 2), quantile(ours, 2), quantile(ratios, 2), quantile(ratios, 1), quantile(ratios, 3))
}

// quantile is the value of a quarter, of two quarters or of three quarters of a list.
func quantile(list []float64, quarters int) float64 {
	list = slices.Sorted(slices.Values(list))
	return list[(len(list)-1)*quarters/4]
}

// build compiles the reference into a program.
func build(program string, options []string) (string, error) {
	source := program + ".c"
	if err := os.WriteFile(source, []byte(reference), 0o600); err != nil {
		return "", err
	}
	gcc := exec.Command("gcc", append(options, "-O3", "-fopenmp", "-mcmodel=large", "-o", program, source, "-lm")...)
	if out, err := gcc.CombinedOutput(); err != nil {
		return "", fmt.Errorf("compile with gcc: %w: %s", err, out)
	}
	return program, nil
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
