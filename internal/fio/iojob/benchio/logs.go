//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/unit"
)

// logOperations is how many operations are logged, each as lines of three files.
const logOperations = 3_000_000

// logCases are measured with and without a latency log of every operation.
var logCases = []benchCase{
	{"cached 4k randread QD1", "ioengine=io_uring\nrw=randread\nbs=4k\niodepth=1\ninvalidate=0\n", ""},
	{"cached 4k randread QD32", "ioengine=io_uring\nrw=randread\nbs=4k\niodepth=32\ninvalidate=0\n", ""},
}

// benchLogs prints the cost of a log of three million operations in bragg and in fio: operations per second without and
// with it, off, on, on, off in each round, and the largest memory of the process.
func benchLogs(ctx context.Context, s settings, dir string) error {
	fmt.Printf("\nwithout and with write_lat_log of %s operations (lat, clat and slat, a line each), invalidate=0\n\n", unit.FormatCount(logOperations))
	fmt.Printf("%-26s %-6s %9s %9s %7s %10s %10s\n", "case", "", "off/s", "on/s", "ratio", "RSS off", "RSS on")
	for _, c := range logCases {
		if s.only != "" && !strings.Contains("log "+c.name, s.only) {
			continue
		}
		for _, program := range [][]string{{s.bragg, "io"}, s.other()} {
			if err := benchLog(ctx, s, dir, c, program); err != nil {
				return fmt.Errorf("case %q: %w", c.name, err)
			}
		}
	}
	return nil
}

func benchLog(ctx context.Context, s settings, dir string, c benchCase, program []string) error {
	job := fmt.Sprintf("[job]\nfilename=%s\nsize=%s\nio_size=%d\nnorandommap\n%s", filepath.Join(dir, "file"), s.size, int64(logOperations)*4096, c.options)
	off, on := filepath.Join(dir, "off.fio"), filepath.Join(dir, "on.fio")
	logged := job + "write_lat_log=" + filepath.Join(dir, "log") + "\n"
	if err := errors.Join(os.WriteFile(off, []byte(job), 0o644), os.WriteFile(on, []byte(logged), 0o644)); err != nil {
		return err
	}
	name := "peer"
	if program[0] == s.bragg {
		name = "ours"
	}
	words := append(slices.Clone(program), "--output-format=json")
	var all [2][]measured
	var ratios []float64
	for round := range s.rounds + 1 {
		var sum [2]float64
		for _, with := range []int{0, 1, 1, 0} {
			m, err := measure(ctx, append(words[:len(words):len(words)], []string{off, on}[with]))
			if err != nil {
				return err
			}
			if round == 0 {
				continue // the file is laid out and the cache warm
			}
			all[with] = append(all[with], m)
			sum[with] += m.rate
		}
		if round > 0 {
			ratios = append(ratios, sum[1]/sum[0])
		}
	}
	rate := func(m measured) float64 { return m.rate }
	memory := func(m measured) float64 { return m.memoryBytes }
	fmt.Printf("%-26s %-6s %9s %9s %7.3f %10s %10s\n", c.name, name, unit.FormatCount(medianOf(all[0], rate)),
		unit.FormatCount(medianOf(all[1], rate)), median(ratios), unit.FormatBytes(int64(medianOf(all[0], memory))),
		unit.FormatBytes(int64(medianOf(all[1], memory))))
	return nil
}
