//go:build linux

// Command benchcommon runs one job in fio, in sysbench and on the native engine: random reads, and random writes, of one file with direct I/O
// by threads of one operation each, in turns on this machine, which should be idle. All three run as generators of loads, so that their
// intervals are compared, not what they print.
//
//	go run ./internal/load/sysbench/benchcommon --rounds 7 --seconds 4
//
// It prints medians over rounds of operations per second and of the median service time, and the ratios to fio of each round with their
// quartiles. sysbench chooses three of four places among one in a hundred; storage without a cache does not know.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/fio"
	"github.com/braggdev/bragg/internal/load/ioengine"
	"github.com/braggdev/bragg/internal/load/sysbench"
	"github.com/braggdev/bragg/internal/stat"
	"github.com/braggdev/bragg/internal/unit"
)

type settings struct {
	rounds, threads int
	length          time.Duration
	size, block     int64
	dir             string
}

func main() {
	var s settings
	flag.IntVar(&s.rounds, "rounds", 7, "rounds of all three, for each job")
	flag.IntVar(&s.threads, "threads", 1, "threads")
	seconds := flag.Int("seconds", 4, "length of one run")
	size, block := flag.String("size", "256m", "size of the file"), flag.String("block", "16k", "size of an operation")
	flag.StringVar(&s.dir, "dir", "", "where the files are made (default: the temporary directory)")
	flag.Parse()
	s.length = time.Duration(*seconds) * time.Second
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var wrong [2]error
	s.size, wrong[0] = unit.ParseBytes(*size)
	s.block, wrong[1] = unit.ParseBytes(*block)
	if err := errors.Join(wrong[:]...); err != nil {
		fmt.Fprintln(os.Stderr, "benchcommon:", err)
		os.Exit(2)
	}
	if err := bench(ctx, &s); err != nil {
		fmt.Fprintln(os.Stderr, "benchcommon:", err)
		stop()
		os.Exit(1)
	}
}

// jobs are the same ones as fio's rw and sysbench's mode have them.
var jobs = []struct{ name, rw, mode string }{{"random read", "randread", "rndrd"}, {"random write", "randwrite", "rndwr"}}

// side is one of the three, with what it measured in all rounds.
type side struct {
	name     string
	workload load.Workload
	with     load.Generator
	runs     []measured
}

type measured struct{ rate, median float64 }

func bench(ctx context.Context, s *settings) (err error) {
	dir, err := os.MkdirTemp(s.dir, "benchcommon-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	fmt.Printf("%d threads, operations of %s on a file of %s with direct I/O, %d rounds of %v in turns\n", s.threads, unit.FormatBytes(s.block), unit.FormatBytes(s.size), s.rounds, s.length)
	fmt.Printf("%-14s %-10s %12s %12s %8s %18s\n", "job", "by", "operations/s", "median time", "÷ fio", "quartiles")
	for i, job := range jobs {
		sides, err := sidesOf(s, filepath.Join(dir, strconv.Itoa(i)), job.rw, job.mode)
		if err != nil {
			return err
		}
		for _, one := range sides {
			if err := one.fill(ctx); err != nil {
				return fmt.Errorf("%s by %s: %w", job.name, one.name, err)
			}
		}
		for n := range s.rounds {
			for k := range sides { // another one begins each round
				if err := sides[(n+k)%len(sides)].run(ctx); err != nil {
					return fmt.Errorf("%s by %s: %w", job.name, sides[(n+k)%len(sides)].name, err)
				}
			}
		}
		for _, one := range sides {
			one.print(job.name, sides[0])
		}
	}
	return nil
}

// sidesOf makes the job for all three, fio first. fio and the native engine have one file, sysbench, which makes it itself, another one.
func sidesOf(s *settings, dir, rw, mode string) ([]*side, error) {
	config := fmt.Sprintf("[job]\nioengine=psync\ndirect=1\ntime_based\nnorandommap\nnumjobs=%d\ngroup_reporting\nthread\nrw=%s\nbs=%d\nsize=%d\nfilename=/dev/sdb\n",
		s.threads, rw, s.block, s.size)
	jobFile := load.Workload{ConfigName: "job.fio", Config: config}
	options := load.Workload{Options: map[string]string{"test": "fileio", "mode": mode, "data": strconv.FormatInt(s.size, 10), "files": "1",
		"block_size": strconv.FormatInt(s.block, 10), "threads": strconv.Itoa(s.threads), "fsync_every": "never", "fsync_end": "off"}}
	sides := []*side{{name: "fio", workload: jobFile, with: fio.Generator{}}, {name: "sysbench", workload: options, with: sysbench.Generator{}},
		{name: "native", workload: jobFile, with: ioengine.New()}}
	for i, one := range sides {
		w := &one.workload
		w.Name, w.Group, w.VM, w.Seed, w.Runtime = one.name, "bench", "bench-0001", uint64(i+1), s.length
		folder := filepath.Join(dir, "file")
		if one.name == sysbench.Name {
			folder = filepath.Join(dir, sysbench.Name)
		}
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return nil, err
		}
		path := filepath.Join(folder, "sdb")
		f, err := os.Create(path)
		if err != nil {
			return nil, err
		}
		if err := errors.Join(f.Truncate(s.size), f.Close()); err != nil {
			return nil, err
		}
		w.Devices = []load.Device{{Name: "/dev/sdb", Path: path, SizeBytes: s.size}}
	}
	return sides, nil
}

// fill writes the data once, so that no operation allocates.
func (s *side) fill(ctx context.Context) error {
	w := s.workload
	w.Prefill, w.Runtime = true, 0
	_, err := drive(ctx, s.with, w)
	return err
}

func (s *side) run(ctx context.Context) error {
	m, err := drive(ctx, s.with, s.workload)
	s.runs = append(s.runs, m)
	return err
}

// drive carries out a workload and sums its intervals.
func drive(ctx context.Context, g load.Generator, w load.Workload) (m measured, err error) {
	in, err := g.Prepare(ctx, w)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	operations, nanos, failed, service := uint64(0), int64(0), uint64(0), &stat.Histogram{}
	err = in.Run(ctx, load.SinkFunc(func(iv interval.Interval) {
		nanos += iv.LengthNanos
		for i := range iv.Directions {
			d := &iv.Directions[i]
			operations, failed = operations+d.Operations, failed+d.ErrorCount()
			if d.Service != nil {
				service.Merge(d.Service)
			}
		}
	}))
	if err == nil && failed > 0 {
		err = fmt.Errorf("%d operations failed", failed)
	}
	return measured{float64(operations) / (float64(nanos) / 1e9), service.Quantile(0.5)}, errors.Join(err, context.Cause(ctx))
}

// print has medians, and the ratios to fio of each round.
func (s *side) print(job string, reference *side) {
	var rates, times, ratios []float64
	for i, m := range s.runs {
		rates, times, ratios = append(rates, m.rate), append(times, m.median), append(ratios, m.rate/reference.runs[i].rate)
	}
	fmt.Printf("%-14s %-10s %12s %12s %8.3f %9.3f … %.3f\n", job, s.name, unit.FormatCount(quantile(rates, 2)), unit.FormatLatency(quantile(times, 2)),
		quantile(ratios, 2), quantile(ratios, 1), quantile(ratios, 3))
}

// quantile is the value of a quarter, of two quarters or of three quarters of a list.
func quantile(list []float64, quarters int) float64 {
	if len(list) == 0 {
		return math.NaN()
	}
	list = slices.Sorted(slices.Values(list))
	return list[(len(list)-1)*quarters/4]
}
