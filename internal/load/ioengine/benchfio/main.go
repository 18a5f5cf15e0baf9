//go:build linux

// Command benchfio compares the native engine with fio: the same job files on a private loop device with direct I/O,
// interleaved native, fio, fio, native in each round, so that drift of the machine hits both alike.
//
//	go run ./internal/load/ioengine/benchfio --rounds 5 --seconds 3
//
// For each job it prints the median over rounds of operations per second of both and of their ratio, the CPU time of
// the process per operation, the median and 99th percentile of the service time, and how far the bytes that each
// reported are from the device's own counters. It ends with 1 when a goal is missed. It needs root, losetup and fio.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/braggdev/bragg/internal/unit"
)

// corners are the jobs, in the manner of the classic four corners. They are ours.
var corners = []corner{
	{"random read 8k", "rw=randread\nbs=8k\n"},
	{"random write 8k", "rw=randwrite\nbs=8k\n"},
	{"sequential read 1m", "rw=read\nbs=1m\n"},
	{"sequential write 1m", "rw=write\nbs=1m\n"},
}

type corner struct{ name, options string }

const (
	ratioGoal     = 0.95
	deviationGoal = 0.01
)

type settings struct {
	rounds  int
	seconds float64
	size    int64
	depth   int
	dir     string
	only    string
	engine  string // fio's
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == nativeVerb {
		os.Exit(nativeMain(os.Args[2:]))
	}
	var s settings
	flag.IntVar(&s.rounds, "rounds", 5, "rounds of native, fio, fio, native per job")
	flag.Float64Var(&s.seconds, "seconds", 3, "length of one run")
	flag.IntVar(&s.depth, "depth", 128, "queue depth")
	flag.StringVar(&s.dir, "dir", "", "where the file behind the device is made (default: the temporary directory)")
	flag.StringVar(&s.only, "only", "", "only the job of this name")
	flag.StringVar(&s.engine, "fio-engine", "libaio", "fio's ioengine")
	size := flag.String("size", "1g", "size of the device")
	flag.Parse()
	var err error
	if s.size, err = unit.ParseBytes(*size); err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		err = bench(ctx, s)
		stop()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchfio:", err)
		os.Exit(1)
	}
}

func bench(ctx context.Context, s settings) (err error) {
	device, err := makeDevice(ctx, s.dir, s.size)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, device.remove()) }()
	fmt.Printf("%s on a private loop device of %s with direct I/O, queue depth %d, %d rounds of 4 × %s\n\n",
		fioVersion(ctx), unit.FormatBytes(s.size), s.depth, s.rounds, unit.FormatDuration(seconds(s.seconds)))
	fmt.Printf("%-20s %10s %10s %7s %9s %9s %19s %19s %8s %8s\n", "job", "native/s", "fio/s", "ratio",
		"CPU/op", "fio", "p50/p99", "fio", "bytes", "fio")
	missed := 0
	for _, c := range corners {
		if s.only != "" && s.only != c.name {
			continue
		}
		r, err := benchCorner(ctx, s, device, c)
		if err != nil {
			return fmt.Errorf("job %q: %w", c.name, err)
		}
		r.print(c.name)
		if r.missed() {
			missed++
		}
	}
	fmt.Printf("\nbytes: largest difference from /sys/block/%s/stat; CPU of the whole process\n", device.name)
	if missed > 0 {
		return fmt.Errorf("%d jobs miss a goal: ratio at least %.2f, native bytes within %.0f %% of the device",
			missed, ratioGoal, 100*deviationGoal)
	}
	return nil
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// measured is one run of one side.
type measured struct {
	Operations uint64  `json:"operations"`
	Bytes      uint64  `json:"bytes"`
	Seconds    float64 `json:"seconds"`
	P50        float64 `json:"p50"`
	P99        float64 `json:"p99"`
	Engine     string  `json:"engine"`

	cpu         time.Duration // of the whole process
	deviceBytes uint64
}

func (m *measured) rate() float64 { return float64(m.Operations) / m.Seconds }

func (m *measured) deviation() float64 {
	if m.deviceBytes == 0 {
		return 1
	}
	return float64(m.Bytes)/float64(m.deviceBytes) - 1
}

// result is all rounds of one job.
type result struct {
	native, fio []measured
	ratios      []float64 // by round
}

func benchCorner(ctx context.Context, s settings, d *device, c corner) (*result, error) {
	job := fmt.Sprintf("[job]\nioengine=%s\ndirect=1\ntime_based\nnorandommap\niodepth=%d\nfilename=%s\n%s", s.engine, s.depth, d.path, c.options)
	r := &result{}
	for range s.rounds {
		var round [2][]measured
		for _, side := range []int{0, 1, 1, 0} {
			m, err := d.measure(func() (measured, error) {
				if side == 0 {
					return runNative(ctx, s, d, job)
				}
				return runFio(ctx, s, job)
			})
			if err != nil {
				return nil, err
			}
			round[side] = append(round[side], m)
		}
		r.native = append(r.native, round[0]...)
		r.fio = append(r.fio, round[1]...)
		r.ratios = append(r.ratios, (round[0][0].rate()+round[0][1].rate())/(round[1][0].rate()+round[1][1].rate()))
	}
	return r, nil
}

func (r *result) missed() bool {
	return median(r.ratios) < ratioGoal || largestDeviation(r.native) > deviationGoal
}

func (r *result) print(name string) {
	rate := func(m *measured) float64 { return m.rate() }
	cpu := func(m *measured) float64 { return float64(m.cpu) / float64(max(1, m.Operations)) }
	p50 := func(m *measured) float64 { return m.P50 }
	p99 := func(m *measured) float64 { return m.P99 }
	latency := func(all []measured) string {
		return unit.FormatLatency(medianOf(all, p50)) + " / " + unit.FormatLatency(medianOf(all, p99))
	}
	fmt.Printf("%-20s %10s %10s %7.3f %9s %9s %19s %19s %7.2f%% %7.2f%%\n", name,
		unit.FormatCount(medianOf(r.native, rate)), unit.FormatCount(medianOf(r.fio, rate)), median(r.ratios),
		unit.FormatLatency(medianOf(r.native, cpu)), unit.FormatLatency(medianOf(r.fio, cpu)),
		latency(r.native), latency(r.fio), 100*largestDeviation(r.native), 100*largestDeviation(r.fio))
}

func medianOf(all []measured, f func(*measured) float64) float64 {
	values := make([]float64, len(all))
	for i := range all {
		values[i] = f(&all[i])
	}
	return median(values)
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

func largestDeviation(all []measured) float64 {
	var largest float64
	for i := range all {
		largest = max(largest, all[i].deviation(), -all[i].deviation())
	}
	return largest
}
