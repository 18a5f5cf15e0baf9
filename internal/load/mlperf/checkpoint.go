package mlperf

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/program"
	"github.com/braggdev/bragg/internal/unit"
)

// rankBytes is the share of one rank: the whole checkpoint divided by the ranks of the model, however many of them this VM runs.
func (s *checkpointing) rankBytes() int64 {
	return max(1, int64(float64(s.model.bytes())/float64(s.model.ranks)*s.fraction))
}

// bytes is the size of what the ranks of all VMs write of one checkpoint.
func (s *checkpointing) bytes() int64 { return s.rankBytes() * int64(s.ranks) }

// share is the ranks of one VM, of which the first has the number from.
type share struct{ from, count int }

// of spreads ranks over VMs, so that their numbers of ranks differ by one at most.
func (s *checkpointing) of(vm int) share {
	from := vm * s.ranks / s.vms
	return share{from: from, count: (vm+1)*s.ranks/s.vms - from}
}

// most is the most ranks that a VM has.
func (s *checkpointing) most() int { return (s.ranks + s.vms - 1) / s.vms }

func (c *config) planCheckpoints(w *load.Workload) (load.Plan, error) {
	s := &c.saving
	all := s.rankBytes() * int64(s.most()*s.count)
	p := load.Plan{Engine: c.engine(&w.Remote), InStep: inStep(&w.Remote), BlockBytesMax: chunkBytes, OwnData: true, BytesWritten: all, Notes: []string{
		fmt.Sprintf("%d checkpoints of %s in %s", s.count, unit.FormatBytes(s.bytes()), c.place)}}
	p.Extents = c.extents(all, &p)
	if err := c.fits(w, p.Extents); err != nil {
		return p, err
	}
	if w.Prefill {
		p.Extents, p.BytesWritten = nil, 0
		return p, nil
	}
	p.Notes = append(p.Notes, fmt.Sprintf("%s: %d ranks write %s each, with fsync; then they are dropped from memory and read back",
		s.model.name, s.ranks, unit.FormatBytes(s.rankBytes())))
	if p.InStep {
		p.Notes = append(p.Notes, fmt.Sprintf("the ranks are spread over %d VMs, at most %d on each; every checkpoint begins and ends on all VMs together", s.vms, s.most()))
	}
	p.Jobs = []load.JobPlan{{Name: s.model.name, Pattern: "files", BlockSizes: unit.FormatBytes(chunkBytes), QueueDepth: s.most(), DepthAsked: s.most(), Clones: 1,
		SizeBytes: all, Reads: true, Writes: true, Flushes: true, BlockMin: 1, BlockMax: chunkBytes}}
	p.Notes = append(p.Notes, s.scaled()...)
	return p, nil
}

// scaled states what is smaller than in the benchmark.
func (s *checkpointing) scaled() (notes []string) {
	if s.fraction < 1 {
		notes = append(notes, fmt.Sprintf("checkpoints have %g %% of the size of %s, which is %s", 100*s.fraction, s.model.name, unit.FormatBytes(s.model.bytes())))
	}
	if s.ranks < s.model.ranks {
		notes = append(notes, fmt.Sprintf("%d of the %d ranks write and read", s.ranks, s.model.ranks))
	}
	return notes
}

// saver writes checkpoints and reads them back.
type saver struct {
	*checkpointing
	dir  string
	key  uint64
	out  *record
	axis program.Axis
	mine share
	// others are the VMs of the load.
	others *together
}

func (s *saver) path(checkpoint, rank int) string {
	return filepath.Join(s.dir, "checkpoints", fmt.Sprintf("%04d", checkpoint), fmt.Sprintf("rank-%04d.bin", rank))
}

// run removes the checkpoints at its end: they have no further use.
func (s *saver) run(ctx context.Context) (err error) {
	defer func() {
		if removing := os.RemoveAll(filepath.Join(s.dir, "checkpoints")); err == nil {
			err = removing
		}
	}()
	known := len(checkpointGauges)
	if s.others != nil {
		known += len(checkpointTogetherGauges)
	}
	for _, note := range s.scaled() {
		s.out.say("%s\n", note)
	}
	for direction, name := range checkpointOperations {
		sum := 0.0
		for n := range s.count {
			t, err := s.all(ctx, direction, n)
			if err != nil || ctx.Err() != nil {
				return err
			}
			values := interval.UnknownGauges(known)
			own, whole := rate(s.rankBytes()*int64(s.mine.count), t.slowest), rate(s.bytes(), t.all)
			sum += whole
			values[direction] = own / 1e6
			if s.others != nil {
				values[2+direction], values[4] = whole/1e6, float64(t.ended-t.slowest)/1e6
			}
			s.out.set(values)
			s.out.say("%s %d%s: %s, %.4g MB/s\n", name, n+1, s.vmsInWords(), unit.FormatBytes(s.bytes()), whole/1e6)
		}
		s.out.say("%s%s: mean %.4g MB/s of %d\n", name, s.vmsInWords(), sum/float64(s.count)/1e6, s.count)
	}
	return nil
}

// rate is in bytes per second.
func rate(bytes, nanos int64) float64 { return float64(bytes) / float64(max(1, nanos)) * 1e9 }

func (s *saver) vmsInWords() string {
	if s.others == nil {
		return ""
	}
	return fmt.Sprintf(" of %d VMs", s.vms)
}

// took is what one checkpoint took, in nanoseconds from its start: the slowest rank of this VM, the slowest of all VMs, and the end of the
// barrier here.
type took struct{ slowest, all, ended int64 }

// all moves one checkpoint by all ranks at the same time, which begin on all VMs together. Its bandwidth is that of the slowest rank, times
// their number.
func (s *saver) all(ctx context.Context, direction, checkpoint int) (t took, err error) {
	if err := os.MkdirAll(filepath.Dir(s.path(checkpoint, 0)), 0o700); err != nil {
		return t, err
	}
	if _, err := s.others.slowest(ctx, 0); err != nil {
		return t, err
	}
	errs, ends := make([]error, s.mine.count), make([]int64, s.mine.count)
	var all sync.WaitGroup
	began := s.axis.Now()
	for i := range s.mine.count {
		rank := s.mine.from + i
		all.Go(func() {
			if direction == opWrite {
				errs[i] = writeFile(ctx, s.path(checkpoint, rank), s.rankBytes(), load.Key(s.key, uint64(checkpoint*s.ranks+rank)), make([]byte, chunkBytes))
			} else {
				errs[i] = readFile(ctx, s.path(checkpoint, rank), s.rankBytes())
			}
			if now := s.axis.Now(); errs[i] == nil {
				ends[i] = now - began
				s.out.add(program.Operation{Kind: direction, End: now, Latency: now - began, Bytes: uint64(s.rankBytes())})
			}
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		if ctx.Err() != nil {
			return t, nil
		}
		return t, err
	}
	t.slowest = slices.Max(ends)
	t.all, err = s.others.slowest(ctx, t.slowest)
	t.ended = s.axis.Now() - began
	return t, err
}

func readFile(ctx context.Context, path string, size int64) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	buffer := make([]byte, chunkBytes)
	read := int64(0)
	for ctx.Err() == nil {
		n, err := f.Read(buffer)
		if read += int64(n); err == io.EOF && read == size {
			return nil
		} else if err != nil {
			return fmt.Errorf("read %s after %d of %d bytes: %w", filepath.Base(path), read, size, err)
		}
	}
	return ctx.Err()
}
