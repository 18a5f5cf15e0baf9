//go:build linux

// Command benchio compares bragg io with fio: the same job files on the same file, interleaved bragg, fio, fio, bragg in
// each round, so that drift of the machine affects both equally.
//
//	go run ./internal/fio/iojob/benchio --bragg bin/bragg --rounds 5 --seconds 2
//
//	go run ./internal/fio/iojob/benchio --bragg bin/bragg --peer bin/bragg-before
//
// With --peer it compares two builds of bragg in the same way, without the rows for fio only.
//
// For each case it prints the medians over rounds of operations per second, of operations per second of CPU time of the
// whole process, and of their ratios. "best" gives fio the options that make it fast (registered files and buffers,
// batches); Bragg's job file does not change. "others" is the share of all CPUs that other processes used in the meantime,
// as the kernel counts it, including kernel threads and stolen time. If it is large, the rates compare shares of CPUs:
// fio's jobs run in separate sessions, to each of which the scheduler gives a share (sched_autogroup), and bragg is one
// session. In that case, compare operations per CPU second. It needs fio.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"github.com/braggdev/bragg/internal/unit"
)

// benchCase is one row: the options of both, and those only for fio.
type benchCase struct {
	name, options, best string
}

// bestOptions make fio fast at a deep queue, bestAlone at depth 1, where there is nothing to batch.
const bestAlone = "registerfiles\nfixedbufs\n"

const bestOptions = "registerfiles\nfixedbufs\niodepth_batch_submit=8\niodepth_batch_complete_min=1\niodepth_batch_complete_max=32\n"

// Calls that block, and mapped memory, on a file in the page cache.
const (
	psyncOptions = "ioengine=psync\nbs=4k\ninvalidate=0\ngroup_reporting\n"
	mmapOptions  = "ioengine=mmap\nbs=4k\ninvalidate=0\ngroup_reporting\n"
)

var cases = []benchCase{
	{"null, no data", "ioengine=null\nrw=randread\nbs=4k\nsize=1g\n", ""},
	{"cached 4k randread QD1", "ioengine=io_uring\nrw=randread\nbs=4k\niodepth=1\ninvalidate=0\n", bestAlone},
	{"cached 4k randread QD32", "ioengine=io_uring\nrw=randread\nbs=4k\niodepth=32\ninvalidate=0\n", bestOptions},
	{"cached 4k randread QD128", "ioengine=io_uring\nrw=randread\nbs=4k\niodepth=128\ninvalidate=0\n", bestOptions},
	{"psync 4k randread, 1 job", psyncOptions + "rw=randread\n", ""},
	{"psync 4k randread, 4 jobs", psyncOptions + "rw=randread\nnumjobs=4\n", ""},
	{"psync 4k randwrite, 2 jobs", psyncOptions + "rw=randwrite\nnumjobs=2\n", ""},
	{"psync 4k write, fsync=1", psyncOptions + "rw=write\nfsync=1\n", ""},
	{"mmap 4k randread, 1 job", mmapOptions + "rw=randread\n", ""},
	{"mmap 4k randread, 4 jobs", mmapOptions + "rw=randread\nnumjobs=4\n", ""},
	{"mmap 4k randwrite, 1 job", mmapOptions + "rw=randwrite\n", ""},
	{"direct 4k randread QD1", "ioengine=io_uring\ndirect=1\nrw=randread\nbs=4k\niodepth=1\n", bestAlone},
	{"direct 4k randread QD32", "ioengine=io_uring\ndirect=1\nrw=randread\nbs=4k\niodepth=32\n", bestOptions},
	{"direct 4k randwrite QD1", "ioengine=io_uring\ndirect=1\nrw=randwrite\nbs=4k\niodepth=1\n", bestAlone},
	{"direct 4k randwrite QD32", "ioengine=io_uring\ndirect=1\nrw=randwrite\nbs=4k\niodepth=32\n", bestOptions},
	{"direct 1m read QD8", "ioengine=io_uring\ndirect=1\nrw=read\nbs=1m\niodepth=8\n", ""},
	{"direct 1m write QD8", "ioengine=io_uring\ndirect=1\nrw=write\nbs=1m\niodepth=8\n", ""},
}

// invalidate returns whether the page cache is emptied before each run: not with 0, and with direct access it does not
// matter.
func (c *benchCase) invalidate() string {
	switch {
	case strings.Contains(c.options, "invalidate=0"):
		return "0"
	case strings.Contains(c.options, "ioengine=null"):
		return "-"
	}
	return "1"
}

type settings struct {
	bragg, dir, only string
	peer             string // another bragg; "" is fio
	rounds           int
	seconds          float64
	size             string
}

func main() {
	var s settings
	flag.StringVar(&s.bragg, "bragg", "bin/bragg", "the program")
	flag.StringVar(&s.peer, "peer", "", "another build of bragg to compare with (default: fio)")
	flag.StringVar(&s.dir, "dir", "", "where the file is made (default: the temporary directory)")
	flag.StringVar(&s.only, "only", "", "only cases whose name contains this")
	flag.IntVar(&s.rounds, "rounds", 5, "rounds of bragg, peer, peer, bragg per case")
	flag.Float64Var(&s.seconds, "seconds", 2, "length of one run")
	flag.StringVar(&s.size, "size", "256m", "size of the file")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := bench(ctx, s)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchio:", err)
		os.Exit(1)
	}
}

func bench(ctx context.Context, s settings) (err error) {
	dir, err := os.MkdirTemp(s.dir, "benchio-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if s.bragg, err = filepath.Abs(s.bragg); err != nil {
		return err
	}
	if s.peer != "" {
		if s.peer, err = filepath.Abs(s.peer); err != nil {
			return err
		}
	}
	fmt.Printf("%s against %s on a file of %s, %d rounds of 4 × %.3g s, medians; the file system is flushed before each run\n\n", s.bragg, strings.Join(s.other(), " "), s.size, s.rounds, s.seconds)
	fmt.Printf("%-26s %-10s %-8s %9s %9s %7s %13s %13s %7s %17s %7s\n", "case", "invalidate", "options", "ours/s", "peer/s", "ratio", "ours/CPU-s", "peer/CPU-s", "ratio", "mean latency", "others")
	for _, c := range cases {
		if s.only != "" && !strings.Contains(c.name, s.only) {
			continue
		}
		extras := slices.Compact([]string{"", c.best})
		if s.peer != "" {
			extras = extras[:1]
		}
		for _, extra := range extras {
			if err := benchOne(ctx, s, dir, c, extra); err != nil {
				return fmt.Errorf("case %q: %w", c.name, err)
			}
		}
	}
	return benchLogs(ctx, s, dir)
}

// other is the program that bragg is compared with, without a job file.
func (s settings) other() []string {
	if s.peer == "" {
		return []string{"fio"}
	}
	return []string{s.peer, "io"}
}

// measured is one run of one side.
type measured struct {
	rate, perCPU, mean, memoryBytes, others float64
}

func benchOne(ctx context.Context, s settings, dir string, c benchCase, extra string) error {
	job := fmt.Sprintf("[job]\nfilename=%s\nsize=%s\ntime_based\nnorandommap\nruntime=%dms\n%s", filepath.Join(dir, "file"), s.size,
		int(s.seconds*1000), c.options)
	if strings.Contains(c.options, "ioengine=null") {
		job = strings.Replace(job, "size="+s.size+"\n", "", 1)
	}
	ours, theirs := filepath.Join(dir, "ours.fio"), filepath.Join(dir, "fio.fio")
	if err := errors.Join(os.WriteFile(ours, []byte(job), 0o644), os.WriteFile(theirs, []byte(job+extra), 0o644)); err != nil {
		return err
	}
	sides := [2][]string{{s.bragg, "io", ours, "--output-format=json"}, append(s.other(), theirs, "--output-format=json")}
	var all [2][]measured
	var ratios, cpuRatios []float64
	for round := range s.rounds + 1 {
		var sum [2]measured
		for _, side := range []int{0, 1, 1, 0} {
			if err := flush(dir); err != nil {
				return err
			}
			m, err := measure(ctx, sides[side])
			if err != nil {
				return err
			}
			if round == 0 {
				continue // the file is laid out and the cache warm
			}
			all[side] = append(all[side], m)
			sum[side].rate += m.rate
			sum[side].perCPU += m.perCPU
		}
		if round > 0 {
			ratios, cpuRatios = append(ratios, sum[0].rate/sum[1].rate), append(cpuRatios, sum[0].perCPU/sum[1].perCPU)
		}
	}
	kind := "default"
	if extra != "" {
		kind = "best"
	}
	rate := func(m measured) float64 { return m.rate }
	perCPU := func(m measured) float64 { return m.perCPU }
	mean := func(m measured) float64 { return m.mean }
	others := func(m measured) float64 { return m.others }
	fmt.Printf("%-26s %-10s %-8s %9s %9s %7.3f %13s %13s %7.3f %8s %8s %6.1f%%\n", c.name, c.invalidate(), kind, unit.FormatCount(medianOf(all[0], rate)),
		unit.FormatCount(medianOf(all[1], rate)), median(ratios), unit.FormatCount(medianOf(all[0], perCPU)),
		unit.FormatCount(medianOf(all[1], perCPU)), median(cpuRatios), unit.FormatLatency(medianOf(all[0], mean)),
		unit.FormatLatency(medianOf(all[1], mean)), 100*medianOf(slices.Concat(all[0], all[1]), others))
	return nil
}

// flush writes back what the previous run left in the page cache, so that no side pays for the other's writes. It flushes
// the whole file system: after an fsync of only the file, the kernel treats it as dirty for another 30 s, and writes back
// during the run.
func flush(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(unix.Syncfs(int(d.Fd())), d.Close())
}

// measure runs one side and reads its output, which has the same format for both.
func measure(ctx context.Context, words []string) (measured, error) {
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Stderr = os.Stderr
	busy, err := busySeconds()
	if err != nil {
		return measured{}, err
	}
	began := time.Now()
	out, err := cmd.Output()
	if err != nil {
		return measured{}, fmt.Errorf("%s: %w", words[0], err)
	}
	took := time.Since(began)
	after, err := busySeconds()
	if err != nil {
		return measured{}, err
	}
	var doc struct {
		Jobs []struct{ Read, Write direction }
	}
	if err := json.Unmarshal(out, &doc); err != nil || len(doc.Jobs) == 0 {
		return measured{}, fmt.Errorf("%s: read its report: %w", words[0], err)
	}
	j := doc.Jobs[0]
	total := float64(j.Read.Total + j.Write.Total)
	cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	m := measured{rate: j.Read.IOPS + j.Write.IOPS, perCPU: total / max(cpu, time.Millisecond).Seconds()}
	m.others = max(0, after-busy-cpu.Seconds()) / (took.Seconds() * float64(runtime.NumCPU()))
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		m.memoryBytes = float64(usage.Maxrss) * 1024
	}
	m.mean = max(j.Read.Latency.Mean, j.Write.Latency.Mean)
	return m, nil
}

// busySeconds is how long all CPUs together were busy or stolen since the machine started.
func busySeconds() (float64, error) {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return 0, err
	}
	stat, err := fs.Stat()
	if err != nil {
		return 0, err
	}
	c := stat.CPUTotal
	return c.User + c.Nice + c.System + c.IRQ + c.SoftIRQ + c.Steal, nil
}

type direction struct {
	IOPS    float64 `json:"iops"`
	Total   uint64  `json:"total_ios"`
	Latency struct {
		Mean float64 `json:"mean"`
	} `json:"lat_ns"`
}

func medianOf(all []measured, f func(measured) float64) float64 {
	values := make([]float64, len(all))
	for i := range all {
		values[i] = f(all[i])
	}
	return median(values)
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
